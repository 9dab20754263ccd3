// Small values that the page keeps for the next visit. Where the browser refuses storage, they are not kept.

export function readKept<T>(name: string): T | undefined {
  try {
    return JSON.parse(localStorage.getItem(`tritloom-chat-${name}`) ?? 'null') ?? undefined
  } catch {
    return undefined
  }
}

export function keep(name: string, value: unknown) {
  try {
    localStorage.setItem(`tritloom-chat-${name}`, JSON.stringify(value))
  } catch {
    // Next time the page has its defaults.
  }
}

/** The conversation that this tab shows, so that a reload shows it again. */
export const openId = {
  get(): string | undefined {
    try {
      return sessionStorage.getItem('tritloom-chat-open') ?? undefined
    } catch {
      return undefined
    }
  },
  set(id: string | undefined) {
    try {
      if (id === undefined) sessionStorage.removeItem('tritloom-chat-open')
      else sessionStorage.setItem('tritloom-chat-open', id)
    } catch {
      // A reload begins a new conversation.
    }
  }
}
