// Addresses as a page gives them.
import { badOption } from './check.js'
import { platform } from './platform.js'

/**
 * An absolute address. A relative one is resolved here, because it means the page's folder, which a
 * worker does not know. Where there is no page, a source may be a path. The error for a bad address names `option`.
 */
export function absolute(option: string, url: unknown): URL {
  if (typeof url !== 'string' && !(url instanceof URL)) {
    throw badOption(option, 'must be a string or a URL')
  }
  try {
    if (platform.address && option === 'source') return platform.address(String(url))
    return new URL(url, globalThis.document?.baseURI ?? globalThis.location?.href)
  } catch {
    throw badOption(option, `\`${url}\` is not a valid URL`)
  }
}
