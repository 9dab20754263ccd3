// Serves the small model at /models/, in development and in the preview, and adds it to the built
// site. So the model is in git only once.
import { createReadStream, readFileSync, statSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { basename } from 'node:path'
import type { Plugin } from 'vite'

/**
 * Serves `file` as `models/<its name>`, and copies it there in a build. It sends an ETag and
 * ranges, as static hosts do, so that a broken download can go on.
 */
export function bundledModel(file: string): Plugin {
  const address = `models/${basename(file)}`

  function serve({ headers }: IncomingMessage, response: ServerResponse) {
    const { size, mtimeMs } = statSync(file)
    const etag = `"${size}-${mtimeMs}"`
    response.setHeader('Content-Type', 'application/octet-stream')
    response.setHeader('Accept-Ranges', 'bytes')
    response.setHeader('ETag', etag)
    const asked = /^bytes=(\d+)-(\d*)$/.exec(headers.range ?? '')
    const isSame = (headers['if-range'] ?? etag) === etag
    let [start, end] = [0, size - 1]
    const [first, last] = [Number(asked?.[1]), Math.min(Number(asked?.[2] || end), end)]
    if (isSame && first <= last) {
      ;[start, end] = [first, last]
      response.statusCode = 206
      response.setHeader('Content-Range', `bytes ${start}-${end}/${size}`)
    }
    response.setHeader('Content-Length', end - start + 1)
    const bytes = createReadStream(file, { start, end })
    bytes.on('error', error => response.destroy(error)).pipe(response)
  }

  return {
    name: 'bundled-model',
    configureServer: ({ middlewares }) => void middlewares.use(`/${address}`, serve),
    // Without this, the preview compresses every file of an unknown type. Then a page could not
    // tell how many bytes are still to come.
    configurePreviewServer: ({ middlewares }) => void middlewares.use(`/${address}`, serve),
    generateBundle() {
      this.emitFile({ type: 'asset', fileName: address, source: readFileSync(file) })
    }
  }
}
