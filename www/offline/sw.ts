// The service worker: keeps the pages' files, so that a second visit needs no network.
// Models are not its business: the package keeps them in IndexedDB.

/** The built site, put in by `build/offline-files.ts`. */
declare const OFFLINE_SITE: { version: string; files: string[] }
declare const self: ServiceWorkerGlobalScope
export {} // A module, so that this `self` is its own.

const { version, files } = OFFLINE_SITE
const PREFIX = 'ternlight-site-'
const NAME = PREFIX + version

/** A page is kept under its folder's address, as most hosts redirect `index.html` to it and a redirect cannot be kept. */
function address(url: string): string {
  const { origin, pathname } = new URL(url, self.registration.scope)
  return origin + pathname.replace(/\/index\.html$/, '/')
}

async function keepSite(): Promise<void> {
  const cache = await caches.open(NAME)
  // Past the HTTP cache: what is kept has to be of one version.
  await cache.addAll(files.map(file => new Request(address(file), { cache: 'reload' })))
}

async function dropOldSites(): Promise<void> {
  const names = await caches.keys()
  await Promise.all(names.filter(name => name.startsWith(PREFIX) && name !== NAME).map(name => caches.delete(name)))
}

async function answer(request: Request): Promise<Response> {
  const cache = await caches.open(NAME)
  return (await cache.match(address(request.url))) ?? fetch(request)
}

const kept = new Set(files.map(address))

// No skipWaiting: an open page goes on with the version that it started with, whose lazy parts the new one lacks.
self.addEventListener('install', event => event.waitUntil(keepSite()))
self.addEventListener('activate', event => event.waitUntil(dropOldSites().then(() => self.clients.claim())))
self.addEventListener('fetch', event => {
  const { request } = event
  if (request.method === 'GET' && kept.has(address(request.url))) event.respondWith(answer(request))
})
