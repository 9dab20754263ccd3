// The service worker. It stores the files of the pages, so that a second visit needs no network. It
// does not store models, because the package stores them itself.

/** The files of the site. `build/offline-files.ts` writes them here in place of this name. */
declare const OFFLINE_SITE: { version: string; files: string[] }
declare const self: ServiceWorkerGlobalScope
export {} // Makes this a module, which may declare a `self` of its own.

const { version, files } = OFFLINE_SITE
const PREFIX = 'tritloom-site-'
const NAME = PREFIX + version
/** Not of one version of the site. */
const DOCS = 'tritloom-docs'

/**
 * The address under which a file is stored. A page is stored under its folder, because most hosts
 * redirect `index.html` to the folder, and a cache does not take redirects.
 */
function address(url: string): string {
  const { origin, pathname } = new URL(url, self.registration.scope)
  return origin + pathname.replace(/\/index\.html$/, '/')
}

async function keepSite(): Promise<void> {
  const cache = await caches.open(NAME)
  // `reload` skips the HTTP cache, which may hold files of an older version.
  await cache.addAll(files.map(file => new Request(address(file), { cache: 'reload' })))
}

async function dropOldSites(): Promise<void> {
  const names = await caches.keys()
  const old = names.filter(name => name.startsWith(PREFIX) && name !== NAME)
  await Promise.all(old.map(name => caches.delete(name)))
}

async function answer(request: Request): Promise<Response> {
  const cache = await caches.open(NAME)
  return (await cache.match(address(request.url))) ?? fetch(request)
}

/**
 * A page or a file of the documentation, which is large: kept once it was seen, and fetched anew while there is a
 * network.
 */
async function answerDocs(request: Request): Promise<Response> {
  const cache = await caches.open(DOCS)
  try {
    const response = await fetch(request)
    // Where there is no room for it, it is shown all the same.
    if (response.ok && !response.redirected) await cache.put(request, response.clone()).catch(() => {})
    return response
  } catch (error) {
    const seen = await cache.match(request, { ignoreSearch: true })
    if (seen) return seen
    throw error
  }
}

const kept = new Set(files.map(address))
const docs = new URL('docs/', self.registration.scope).href

// There is no skipWaiting. An open page may still load files of its own version, which a new
// service worker would not have.
self.addEventListener('install', event => event.waitUntil(keepSite()))
self.addEventListener('activate', event => {
  event.waitUntil(dropOldSites().then(() => self.clients.claim()))
})
self.addEventListener('fetch', event => {
  const { request } = event
  const isKept = request.method === 'GET' && kept.has(address(request.url))
  if (isKept) event.respondWith(answer(request))
  else if (request.method === 'GET' && request.url.startsWith(docs)) event.respondWith(answerDocs(request))
})
