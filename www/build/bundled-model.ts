// Puts the small model at /models/ in development, in the preview and in the built site, without a
// second copy in git.
import { createReadStream, readFileSync, statSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { basename } from 'node:path'
import type { Plugin } from 'vite'

/** Serves `file` as `models/<its name>`, and copies it there in a build. */
export function bundledModel(file: string): Plugin {
  const address = `models/${basename(file)}`

  function serve(_request: IncomingMessage, response: ServerResponse) {
    response.setHeader('Content-Type', 'application/octet-stream')
    response.setHeader('Content-Length', statSync(file).size)
    const bytes = createReadStream(file)
    bytes.on('error', error => response.destroy(error)).pipe(response)
  }

  return {
    name: 'bundled-model',
    configureServer: ({ middlewares }) => void middlewares.use(`/${address}`, serve),
    // The preview would compress the model, as it does with every file of a type that it does not
    // know. The page could then not tell how many bytes are still to come.
    configurePreviewServer: ({ middlewares }) => void middlewares.use(`/${address}`, serve),
    generateBundle() {
      this.emitFile({ type: 'asset', fileName: address, source: readFileSync(file) })
    }
  }
}
