// Finds out how many bytes of a model are still to be downloaded.
import type { StoredModel } from '../types.js'

/** The bytes of the model at `url` that none of the stored `models` has; `undefined` if unknown. */
export async function missing(
  url: string, models: readonly StoredModel[], signal?: AbortSignal
): Promise<number | undefined> {
  // If another version has begun to come, it is listed too.
  const versions = models.filter(model => model.url === url)
  if (versions.some(({ complete }) => complete)) return 0
  const stored = versions.reduce((most, { bytes }) => Math.max(most, bytes), 0)
  const known = versions.find(({ bytes }) => bytes === stored)?.total
  const total = known ?? await sizeOfAll(volumes(url), signal)
  // The stored bytes may be of a longer file than the server has now.
  return total > stored ? total - stored : undefined
}

/** The most files of a model, as in the crate. */
const MAX_VOLUMES = 100

/**
 * The addresses of a model's files. If `url` is the address of the first of several files, all of
 * them; none if they are more than a model can have. Otherwise only `url`.
 */
function volumes(url: string): string[] {
  const [, before, count, after] = /^([^?]*-)00001-of-(\d{5})(\.gguf(?:\?.*)?)$/.exec(url) ?? []
  if (before === undefined) return [url]
  if (Number(count) > MAX_VOLUMES) return []
  const name = (n: number) => `${before}${String(n + 1).padStart(5, '0')}-of-${count}${after}`
  return Array.from({ length: Number(count) }, (_, n) => name(n))
}

/** The length of all files together; `NaN` if the server does not report one of them. */
async function sizeOfAll(urls: string[], signal?: AbortSignal): Promise<number> {
  const sizes = await Promise.all(urls.map(url => sizeOf(url, signal)))
  return sizes.reduce((sum, size) => sum + size, 0)
}

/** The length of a file that the server reports; `NaN` if it reports none. */
export async function sizeOf(url: string, signal?: AbortSignal): Promise<number> {
  try {
    const { ok, headers } = await fetch(url, { method: 'HEAD', signal: signal ?? null })
    return ok ? Number(headers.get('content-length') || NaN) : NaN
  } catch {
    return NaN
  }
}
