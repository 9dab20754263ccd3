// Serves the repository to the browser tests, as any good static host would: with ETags and
// ranges, and no special headers. Beside that, it misbehaves on request:
//
//   /as/chunked/PATH     without a Content-Length and without ranges
//   /as/gzip/PATH        compressed, with the Content-Length of what is on the wire
//   /as/cut/PATH         the connection breaks in the middle; no ranges, no ETag
//   /as/short/PATH       only the first half, and a Content-Length to match
//   /as/slow/PATH        a tenth of the file every 100 ms; no ranges
//   /as/isolated/PATH    for a page that is isolated from other origins
//   /as/503/PATH         with a status
//   /play/NAME/PATH      as the script NAME says
//   /control/off, /on    refuses all models, as if the network were off; and serves them again
//   /control/count       how many models were asked for
//   /control/play/NAME   POST: the script, { always, then }; GET: what was asked under it so far
//   /control/go/NAME     what the script holds goes on, now and from now on
//
// A script's `then` is a list of ways to answer, one for each request in turn; `always` holds for
// every request, also for those after the list. See `Way` below. So nothing depends on time but
// what is about time.
//
// The second port is another origin, with CORS.
import { readFileSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import { extname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'

const ROOT = process.env.ROOT ?? fileURLToPath(new URL('../..', import.meta.url))
const PORT = Number(process.env.PORT ?? 8930)

const TYPES = {
  '.html': 'text/html', '.js': 'text/javascript', '.mjs': 'text/javascript', '.json': 'application/json',
  '.wasm': 'application/wasm', '.css': 'text/css', '.svg': 'image/svg+xml', '.png': 'image/png',
  '.webmanifest': 'application/manifest+json'
}

/**
 * How to answer one request.
 * @typedef {object} Way
 * @property {number} [status] with this status and no file
 * @property {string} [redirect] somewhere else
 * @property {boolean} [drop] with nothing: the connection ends
 * @property {number} [cut] with so many bytes, then the connection breaks, with a `hold` when the test says `go`
 * @property {number} [stall] with so many bytes, then none, and the connection stays
 * @property {number | null} [hold] with so many bytes, and the rest when the test says `go`
 * @property {number} [pace] in pieces of so many bytes, with `ms` between them
 * @property {number} [ms] milliseconds, 20 by default
 * @property {string | null} [etag] with another ETag than the file's, or none
 * @property {string} [modified] with a Last-Modified
 * @property {boolean} [ranges] false: ranges are ignored
 * @property {boolean} [gzip] compressed, whatever was asked for
 * @property {number | null} [length] with this Content-Length, or none
 * @property {string} [contentRange] with this Content-Range
 * @property {number} [shift] a range other than the one asked for, by so many bytes
 * @property {number} [size] as if the file had so many bytes: cut off, or zeros after its end
 * @property {Record<string, string>} [headers] with these headers
 */

let off = false
let count = 0
/** @type {Map<string, { always: Way, then: Way[], log: object[], go: () => void, gone: Promise<void> }>} */
const plays = new Map()

const answer = (request, response) => {
  const { pathname } = new URL(request.url, 'http://localhost')
  if (pathname.startsWith('/control/')) return control(pathname.slice('/control/'.length), request, response)
  const [, kind, name, rest] = /^\/(as|play)\/([^/]+)(\/.*)$/.exec(pathname) ?? [null, 'as', 'is', pathname]
  if (rest.endsWith('.gguf')) {
    count += 1
    if (off) return response.destroy()
  }
  if (/^\d+$/.test(name)) return response.writeHead(Number(name)).end()
  const bytes = content(rest)
  if (!bytes) return response.writeHead(404, { 'content-type': 'text/plain' }).end('not found')
  response.setHeader('content-type', TYPES[extname(rest)] ?? 'application/octet-stream')
  if (kind === 'as') return serve(request, response, bytes, WAYS[name](bytes.length))
  const play = plays.get(name)
  const way = { ...play.always, ...play.then.shift() }
  const entry = { range: request.headers.range, ifRange: request.headers['if-range'], status: 0, sent: 0 }
  play.log.push(entry)
  return serve(request, response, bytes, way, entry, play.gone)
}

/** The files that were served, by path: models are asked for in many parts. */
const contents = new Map()

const content = path => {
  const file = join(ROOT, normalize(decodeURIComponent(path)))
  try {
    const { mtimeMs, size } = statSync(file)
    const known = contents.get(file)
    if (known?.mtimeMs !== mtimeMs) contents.set(file, { mtimeMs, bytes: readFileSync(file) })
    return contents.get(file).bytes
  } catch {
    return undefined
  }
}

/** @type {Record<string, (size: number) => Way>} */
const WAYS = {
  is: () => ({}),
  isolated: () => ({ headers: { 'cross-origin-opener-policy': 'same-origin', 'cross-origin-embedder-policy': 'require-corp' } }),
  chunked: () => ({ length: null, ranges: false, etag: null }),
  gzip: () => ({ gzip: true, ranges: false }),
  cut: size => ({ cut: size >> 1, ranges: false, etag: null }),
  short: size => ({ size: size >> 1 }),
  slow: size => ({ pace: Math.ceil(size / 10), ms: 100, ranges: false })
}

/** @param {Way} way */
const serve = (request, response, bytes, way, entry = {}, gone = undefined) => {
  const end = (status, headers = {}) => {
    entry.status = status
    response.writeHead(status, { ...headers, ...way.headers }).end()
  }
  if (way.drop) return response.destroy()
  if (way.redirect) return end(302, { location: way.redirect })
  if (way.status) return end(way.status)
  const size = way.size ?? bytes.length
  if (size < bytes.length) bytes = bytes.subarray(0, size)
  if (size > bytes.length) bytes = Buffer.concat([bytes, Buffer.alloc(size - bytes.length)])
  const etag = way.etag === undefined ? `"${size}"` : way.etag
  if (etag !== null) response.setHeader('etag', etag)
  if (way.modified) response.setHeader('last-modified', way.modified)
  const asked = way.ranges === false ? undefined : /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '')
  const condition = request.headers['if-range']
  let status = 200
  if (asked && (!condition || condition === etag || condition === way.modified)) {
    const [first, last] = [Number(asked[1]) + (way.shift ?? 0), asked[2] ? Math.min(Number(asked[2]) + (way.shift ?? 0), size - 1) : size - 1]
    if (first >= size) return end(416, { 'content-range': `bytes */${size}` })
    status = 206
    response.setHeader('content-range', way.contentRange ?? `bytes ${first}-${last}/${size}`)
    bytes = bytes.subarray(first, last + 1)
  }
  if (way.ranges !== false) response.setHeader('accept-ranges', 'bytes')
  if (way.gzip) {
    bytes = gzipSync(bytes)
    response.setHeader('content-encoding', 'gzip')
  }
  if (way.length !== null) response.setHeader('content-length', way.length ?? bytes.length)
  entry.status = status
  response.writeHead(status, way.headers)
  send(response, bytes, way, entry, gone)
}

const send = async (response, bytes, way, entry, gone) => {
  const most = Math.min(bytes.length, way.cut ?? way.stall ?? bytes.length)
  const step = way.pace ?? 1 << 16
  for (let at = 0; at < most; at += step) {
    if (at >= (way.hold ?? most)) await gone
    if (response.destroyed) break
    const piece = bytes.subarray(at, Math.min(at + step, most))
    await new Promise(resolve => response.write(piece, resolve))
    entry.sent = at + piece.length
    if (way.pace) await new Promise(resolve => setTimeout(resolve, way.ms ?? 20))
  }
  if (way.cut !== undefined) {
    // What the reader has not got by then is lost with the connection.
    await (way.hold === undefined ? new Promise(resolve => setTimeout(resolve, 200)) : gone)
    response.destroy()
  }
  if (way.cut === undefined && way.stall === undefined) response.end()
}

const control = async (what, request, response) => {
  if (what === 'off') off = true
  if (what === 'on') off = false
  const [, verb, name] = /^(play|go)\/(.*)$/.exec(what) ?? []
  if (!verb) return response.end(String(count))
  if (verb === 'go') plays.get(name).go()
  if (request.method === 'POST') {
    let text = ''
    for await (const piece of request) text += piece
    let go
    const gone = new Promise(resolve => { go = resolve })
    plays.set(name, { always: {}, then: [], ...JSON.parse(text), log: [], go, gone })
  }
  response.end(JSON.stringify(plays.get(name)?.log ?? []))
}

createServer(answer).listen(PORT)
createServer((request, response) => {
  response.setHeader('access-control-allow-origin', '*')
  answer(request, response)
}).listen(PORT + 1)
