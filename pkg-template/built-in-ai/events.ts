// Events of the drafts' interfaces.

type Listener = ((event: Event) => unknown) | null

/** An attribute for a listener, such as `oncontextoverflow`. */
export class Handler {
  #listener: Listener = null

  constructor(target: EventTarget, type: string) {
    target.addEventListener(type, event => this.#listener?.call(target, event))
  }

  get value(): Listener {
    return this.#listener
  }

  /** Any value that is no function means none. */
  set value(listener: unknown) {
    this.#listener = typeof listener === 'function' ? listener as Listener : null
  }
}

/** An event of progress, out of 1. */
export function progressEvent(type: string, loaded: number): Event {
  const details = { lengthComputable: true, loaded, total: 1 }
  // Pages and workers know the class; other runtimes do not.
  return typeof ProgressEvent === 'function' ? new ProgressEvent(type, details) : Object.assign(new Event(type), details)
}
