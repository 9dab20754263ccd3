// The service worker: keeps the pages' files, so that a second visit needs no network.
// It does not keep models: the package stores those in IndexedDB.

/** The files of the built site: `build/offline-files.ts` replaces this name by them. */
declare const OFFLINE_SITE: { version: string; files: string[] }
declare const self: ServiceWorkerGlobalScope
export {} // Makes this a module, which may declare a `self` of its own.

const { version, files } = OFFLINE_SITE
const PREFIX = 'ternlight-site-'
const NAME = PREFIX + version

/**
 * The address under which a file is kept. For a page that is its folder: most hosts redirect
 * `index.html` there, and redirects cannot be kept.
 */
function address(url: string): string {
  const { origin, pathname } = new URL(url, self.registration.scope)
  return origin + pathname.replace(/\/index\.html$/, '/')
}

async function keepSite(): Promise<void> {
  const cache = await caches.open(NAME)
  // Without the HTTP cache, which may have files of an older version.
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

const kept = new Set(files.map(address))

// There is no skipWaiting: an open page goes on with its own version, as the new one may lack the
// files that the page has yet to load.
self.addEventListener('install', event => event.waitUntil(keepSite()))
self.addEventListener('activate', event => {
  event.waitUntil(dropOldSites().then(() => self.clients.claim()))
})
self.addEventListener('fetch', event => {
  const { request } = event
  const isKept = request.method === 'GET' && kept.has(address(request.url))
  if (isKept) event.respondWith(answer(request))
})
