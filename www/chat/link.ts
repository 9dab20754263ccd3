// Links that carry a prompt. It is in the fragment, which browsers do not send to any server.

/** The most characters of a link: some programs cut off longer ones. */
const MAX_LINK = 8000

/** The prompt of a link; empty if it carries none. */
export const promptOf = (hash: string): string => new URLSearchParams(hash.replace(/^#/, '')).get('prompt') ?? ''

/** A link to `page` with a prompt, and with the address of a model if that is to be offered. Throws an error for people. */
export function linkTo(page: string, prompt: string, model?: string): string {
  const link = new URL(page)
  link.search = ''
  if (model) link.searchParams.set('model', model)
  link.hash = new URLSearchParams({ prompt }).toString()
  if (link.href.length > MAX_LINK) throw new Error('This message is too long for a link. Export the chat as a file instead.')
  return link.href
}
