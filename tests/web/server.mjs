// Serves the repository to the browser tests as any good static host would: with ETags and ranges,
// and no special headers. It misbehaves on request:
//
//   /as/chunked/PATH     without a Content-Length and without ranges
//   /as/gzip/PATH        compressed, with the Content-Length of the compressed bytes
//   /as/cut/PATH         the connection breaks in the middle; no ranges, no ETag
//   /as/short/PATH       only the first half, with a Content-Length to match
//   /as/slow/PATH        a tenth of the file every 100 ms; no ranges
//   /as/slower/PATH      a fortieth
//   /as/isolated/PATH    for a page that is isolated from other origins
//   /as/copies/PATH      as strict, but policies of the same name may come of several copies of the package
//   /as/strict/PATH      under a policy that allows scripts, workers and WebAssembly of this origin alone,
//                        style sheets, and no address or HTML that is not of the package's policy
//   /as/foreign/PATH     under a policy that allows scripts of the other origin, and workers by blob
//   /as/503/PATH         with a status
//   /script/NAME/PATH    as the script NAME says
//   /spread.gguf, /wide.gguf, /long.gguf, /arm.gguf, /qwen2.gguf, /unknown.gguf,
//   /volumes/NAME-00001-of-00003.gguf
//                        made of the models in tests/data, see models.mjs
//   /tests/web/pirate.gguf, /tests/web/formal.gguf
//                        an adapter of the golden model, where the guide's example looks for them
//   /control/off, /on    refuses all models, as if the network were off; and serves them again
//   /control/count       how many models were asked for
//   /control/script/NAME POST: a script, { always, then }; GET: the requests that came under its path
//   /control/release/NAME  what the script holds goes on, now and from now on
//
// A script's `then` lists how to answer the first requests; `always` holds for every request, also
// for those after the list; `from` for those that begin at an offset, whenever they come. `Reply` below says what an answer can be. Tests that do not need a time
// do not depend on one.
//
// The second port is another origin, with CORS.
import { readFileSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import { extname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { adapterFile } from '../node/adapter-file.mjs'
import { armModel, longModel, preTokenizerModel, spreadModel, volumes, WIDE_SIZE } from './models.mjs'

const ROOT = process.env.ROOT ?? fileURLToPath(new URL('../..', import.meta.url))
const PORT = Number(process.env.PORT ?? 8930)

const TYPES = {
  '.html': 'text/html', '.js': 'text/javascript', '.mjs': 'text/javascript', '.json': 'application/json',
  '.wasm': 'application/wasm', '.css': 'text/css', '.svg': 'image/svg+xml', '.png': 'image/png',
  '.webmanifest': 'application/manifest+json'
}

/**
 * How to answer one request.
 * @typedef {object} Reply
 * @property {number} [after] wait with the answer until the path has had this many requests
 * @property {number} [status] answer with this status and no file
 * @property {string} [redirect] redirect to this address
 * @property {boolean} [drop] send nothing and end the connection
 * @property {number} [cut] send this many bytes, then break the connection; with a `hold`, when the test releases it
 * @property {number} [stall] send this many bytes, then none, and keep the connection open
 * @property {number | null} [hold] send this many bytes, and the rest when the test releases it
 * @property {number} [pace] send this many bytes at a time, with `ms` between them
 * @property {number} [ms] milliseconds, 20 by default
 * @property {string | null} [etag] send this ETag instead of the file's, or none
 * @property {string} [modified] send this Last-Modified
 * @property {boolean} [ranges] false: ignore ranges
 * @property {boolean} [gzip] compress, whatever the request accepts
 * @property {number | null} [length] send this Content-Length, or none
 * @property {string} [contentRange] send this Content-Range
 * @property {number} [shift] move the range by this many bytes
 * @property {number} [size] cut the file off, or add zeros, so that it has this many bytes
 * @property {number} [change] send another byte, 0xff, at this offset
 * @property {Record<string, string>} [headers] send these headers too
 */

let off = false
let count = 0
/**
 * @typedef {object} Script
 * @property {Reply} always
 * @property {Reply[]} then
 * @property {Record<number, Reply>} from
 * @property {object[]} requests
 * @property {() => void} release
 * @property {Promise<void>} released
 */
/** @type {Map<string, Script>} */
const scripts = new Map()

const answer = (request, response) => {
  const { pathname } = new URL(request.url, 'http://localhost')
  if (pathname.startsWith('/control/')) return control(pathname.slice('/control/'.length), request, response)
  const [, kind, name, rest] = /^\/(as|script)\/([^/]+)(\/.*)$/.exec(pathname) ?? [null, 'as', 'is', pathname]
  if (rest.endsWith('.gguf')) {
    count += 1
    if (off) return response.destroy()
  }
  if (/^\d+$/.test(name)) return response.writeHead(Number(name)).end()
  const bytes = content(rest)
  if (!bytes) return response.writeHead(404, { 'content-type': 'text/plain' }).end('not found')
  response.setHeader('content-type', TYPES[extname(rest)] ?? 'application/octet-stream')
  if (kind === 'as') return serve(request, response, bytes, REPLIES[name](bytes.length))
  const script = scripts.get(name)
  const first = /=(\d+)-/.exec(request.headers.range ?? '')?.[1]
  const reply = { ...script.always, ...script.then.shift(), ...script.from[first] }
  const entry = { range: request.headers.range, ifRange: request.headers['if-range'], status: 0, sent: 0 }
  script.requests.push(entry)
  return arrived(script, reply.after ?? 0)
    .then(() => serve(request, response, bytes, reply, entry, script.released))
}

/** Waits until the script has had `count` requests. */
const arrived = async (script, count) => {
  while (script.requests.length < count) await new Promise(resolve => setTimeout(resolve, 10))
}

/** The files that were served, by path: models are asked for in many parts. */
const contents = new Map()
const made = {
  '/spread.gguf': () => spreadModel(),
  '/wide.gguf': () => spreadModel(WIDE_SIZE),
  '/long.gguf': longModel,
  '/arm.gguf': armModel,
  '/qwen2.gguf': () => preTokenizerModel('qwen2'),
  '/unknown.gguf': () => preTokenizerModel('unknown'),
  '/tests/web/pirate.gguf': adapterFile,
  '/tests/web/formal.gguf': adapterFile
}
// Three volumes; the same in a wrong order; and without the last.
for (const [name, order] of Object.entries({ spread: [0, 1, 2], swapped: [0, 2, 1], missing: [0, 1] })) {
  for (const [index, volume] of order.entries()) {
    made[`/volumes/${name}-0000${index + 1}-of-00003.gguf`] = () => volumes(3)[volume]
  }
}

const content = path => {
  if (made[path]) {
    if (!contents.has(path)) contents.set(path, made[path]())
    return contents.get(path)
  }
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

/** No text becomes a script, but by the policies of the package and of the page itself. */
const TRUSTED = `require-trusted-types-for 'script'; trusted-types tritloom page`
/** No more than the package and the demos need; models come from the other port. */
const STRICT = `default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; ` +
  `connect-src 'self' http://localhost:*; style-src 'self'; img-src 'self' data:; ${TRUSTED}`
/** As a page may have it that takes the package from another origin. */
const FOREIGN = `script-src http://localhost:${PORT + 1} 'wasm-unsafe-eval'; worker-src blob:; ${TRUSTED}`

/** @type {Record<string, (size: number) => Reply>} */
const REPLIES = {
  is: () => ({}),
  isolated: () => ({ headers: { 'cross-origin-opener-policy': 'same-origin', 'cross-origin-embedder-policy': 'require-corp' } }),
  strict: () => ({ headers: { 'content-security-policy': STRICT } }),
  copies: () => ({ headers: { 'content-security-policy': STRICT.replace(TRUSTED, `${TRUSTED} 'allow-duplicates'`) } }),
  foreign: () => ({ headers: { 'content-security-policy': FOREIGN } }),
  chunked: () => ({ length: null, ranges: false, etag: null }),
  gzip: () => ({ gzip: true, ranges: false }),
  cut: size => ({ cut: size >> 1, ranges: false, etag: null }),
  short: size => ({ size: size >> 1 }),
  slow: size => ({ pace: Math.ceil(size / 10), ms: 100, ranges: false }),
  slower: size => ({ pace: Math.ceil(size / 40), ms: 100, ranges: false })
}

/** @param {Reply} reply */
const serve = (request, response, bytes, reply, entry = {}, released = undefined) => {
  const end = (status, headers = {}) => {
    entry.status = status
    response.writeHead(status, { ...headers, ...reply.headers }).end()
  }
  if (reply.drop) return response.destroy()
  if (reply.redirect) return end(302, { location: reply.redirect })
  if (reply.status) return end(reply.status)
  const size = reply.size ?? bytes.length
  if (size < bytes.length) bytes = bytes.subarray(0, size)
  if (size > bytes.length) bytes = Buffer.concat([bytes, Buffer.alloc(size - bytes.length)])
  if (reply.change !== undefined) {
    bytes = Buffer.from(bytes)
    bytes[reply.change] = 0xff
  }
  const etag = reply.etag === undefined ? `"${size}"` : reply.etag
  if (etag !== null) response.setHeader('etag', etag)
  if (reply.modified) response.setHeader('last-modified', reply.modified)
  const asked = reply.ranges === false ? undefined : /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '')
  const condition = request.headers['if-range']
  let status = 200
  if (asked && (!condition || condition === etag || condition === reply.modified)) {
    const [first, last] = [Number(asked[1]) + (reply.shift ?? 0), asked[2] ? Math.min(Number(asked[2]) + (reply.shift ?? 0), size - 1) : size - 1]
    if (first >= size) return end(416, { 'content-range': `bytes */${size}` })
    status = 206
    response.setHeader('content-range', reply.contentRange ?? `bytes ${first}-${last}/${size}`)
    bytes = bytes.subarray(first, last + 1)
  }
  if (reply.ranges !== false) response.setHeader('accept-ranges', 'bytes')
  if (reply.gzip) {
    bytes = gzipSync(bytes)
    response.setHeader('content-encoding', 'gzip')
  }
  if (reply.length !== null) response.setHeader('content-length', reply.length ?? bytes.length)
  entry.status = status
  response.writeHead(status, reply.headers)
  send(response, bytes, reply, entry, released)
}

const send = async (response, bytes, reply, entry, released) => {
  const end = Math.min(bytes.length, reply.cut ?? reply.stall ?? bytes.length)
  const step = reply.pace ?? 1 << 16
  for (let at = 0; at < end; at += step) {
    if (at >= (reply.hold ?? end)) await released
    if (response.destroyed) break
    const part = bytes.subarray(at, Math.min(at + step, end))
    await new Promise(resolve => response.write(part, resolve))
    entry.sent = at + part.length
    if (reply.pace) await new Promise(resolve => setTimeout(resolve, reply.ms ?? 20))
  }
  if (reply.cut !== undefined) {
    // The reader loses what it has not received when the connection breaks.
    await (reply.hold === undefined ? new Promise(resolve => setTimeout(resolve, 200)) : released)
    response.destroy()
  }
  if (reply.cut === undefined && reply.stall === undefined) response.end()
}

const control = async (what, request, response) => {
  if (what === 'off') off = true
  if (what === 'on') off = false
  const [, verb, name] = /^(script|release)\/(.*)$/.exec(what) ?? []
  if (!verb) return response.end(String(count))
  if (verb === 'release') scripts.get(name).release()
  if (request.method === 'POST') {
    let text = ''
    for await (const data of request) text += data
    let release
    const released = new Promise(resolve => { release = resolve })
    scripts.set(name, { always: {}, then: [], from: {}, ...JSON.parse(text), requests: [], release, released })
  }
  response.end(JSON.stringify(scripts.get(name)?.requests ?? []))
}

createServer(answer).listen(PORT)
createServer((request, response) => {
  response.setHeader('access-control-allow-origin', '*')
  answer(request, response)
}).listen(PORT + 1)
