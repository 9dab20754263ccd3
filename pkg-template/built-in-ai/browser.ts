// The browser's own interfaces, if it has them.
import type { Availability } from './shared-model.js'

/** The static methods that all of the interfaces have. */
export interface Native {
  availability(options: object): Promise<Availability>
  create(options: object): Promise<unknown>
}

/**
 * The browser's own interface of a name, if it can do what the options ask for, and how soon. `ours` is the class
 * of this entry, which may have been installed under that name.
 */
export async function browsers(
  name: string, ours: unknown, options: object
): Promise<{ native: Native, availability: Availability } | undefined> {
  const native = (globalThis as unknown as Record<string, Native | undefined>)[name]
  if (!native || native === ours) return undefined
  // A browser that does not know an option is one that cannot do it.
  const availability = await (async () => native.availability(options))().catch(() => 'unavailable' as const)
  return availability === 'unavailable' ? undefined : { native, availability }
}
