// Puts the small model at /models/ in development, in the preview and in the built site, without a second copy in git.
import { createReadStream, readFileSync, statSync } from 'node:fs'
import { basename } from 'node:path'
import type { Plugin } from 'vite'

/** Serves `file` as `models/<its name>`, and copies it there in a build. */
export function bundledModel(file: string): Plugin {
  const address = `models/${basename(file)}`
  return {
    name: 'bundled-model',
    configureServer(server) {
      server.middlewares.use(`/${address}`, (_request, response) => {
        response.setHeader('Content-Type', 'application/octet-stream')
        response.setHeader('Content-Length', statSync(file).size)
        createReadStream(file).on('error', error => response.destroy(error)).pipe(response)
      })
    },
    generateBundle() {
      this.emitFile({ type: 'asset', fileName: address, source: readFileSync(file) })
    },
  }
}
