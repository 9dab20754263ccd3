// Tells the service worker which files the site has. The usual library for this, Workbox, would
// bring some 300 packages.
import { createHash } from 'node:crypto'
import type { Plugin } from 'vite'

/** The name in `offline/sw.ts` that the list replaces. */
const PLACEHOLDER = 'OFFLINE_SITE'
const WORKER = 'sw.js'

/** Writes the site's files into the service worker, with a version that changes when one does. */
export function offlineFiles(): Plugin {
  return {
    name: 'offline-files',
    apply: 'build',
    generateBundle: {
      order: 'post',
      handler(_options, bundle) {
        const worker = bundle[WORKER]
        if (worker?.type !== 'chunk') this.error(`${WORKER} is not part of the build`)
        if (!worker.code.includes(PLACEHOLDER)) {
          this.error(`${WORKER} does not name ${PLACEHOLDER}`)
        }
        const hash = createHash('sha256')
        const files = Object.values(bundle)
          .filter(file => file !== worker && isPartOfPages(file.fileName))
          .sort((a, b) => (a.fileName < b.fileName ? -1 : 1))
        for (const file of files) {
          hash.update(file.fileName).update(file.type === 'chunk' ? file.code : file.source)
        }
        const version = hash.digest('hex').slice(0, 16)
        const site = { version, files: files.map(file => file.fileName) }
        worker.code = worker.code.replaceAll(PLACEHOLDER, JSON.stringify(site))
      }
    }
  }
}

/**
 * Whether a file belongs to the pages. Models do not: they are large, and the package stores them
 * itself.
 */
function isPartOfPages(fileName: string): boolean {
  return !fileName.startsWith('models/') && !fileName.endsWith('.map')
}
