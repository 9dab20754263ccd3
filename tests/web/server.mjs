// Serves the repository to the browser tests, as any static host would: no special headers.
// Beside that, it misbehaves on request:
//
//   /as/chunked/PATH     without a Content-Length
//   /as/gzip/PATH        compressed, with the Content-Length of what is on the wire
//   /as/cut/PATH         the connection breaks in the middle
//   /as/short/PATH       only the first half, and a Content-Length to match
//   /as/slow/PATH        a tenth of the file every 100 ms
//   /as/503/PATH         with a status
//   /control/off, /on    refuses all models, as if the network were off; and serves them again
//   /control/count       how many models were asked for
//
// The second port is another origin, with CORS.
import { createReadStream, readFileSync, statSync } from 'node:fs'
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

let off = false
let count = 0

const answer = (request, response) => {
  const { pathname } = new URL(request.url, 'http://localhost')
  if (pathname.startsWith('/control/')) return control(pathname.slice('/control/'.length), response)
  const [, way, rest] = /^\/as\/([^/]+)(\/.*)$/.exec(pathname) ?? [null, 'is', pathname]
  if (rest.endsWith('.gguf')) {
    count += 1
    if (off) return response.destroy()
  }
  if (/^\d+$/.test(way)) return response.writeHead(Number(way)).end()
  const path = join(ROOT, normalize(decodeURIComponent(rest)))
  let size
  try {
    size = statSync(path).isFile() ? statSync(path).size : undefined
  } catch {
    size = undefined
  }
  if (size === undefined) return response.writeHead(404, { 'content-type': 'text/plain' }).end('not found')
  response.setHeader('content-type', TYPES[extname(path)] ?? 'application/octet-stream')
  response.setHeader('etag', `"${size}"`)
  WAYS[way](path, size, response)
}

const WAYS = {
  is: (path, size, response) => {
    response.setHeader('content-length', size)
    createReadStream(path).pipe(response)
  },
  chunked: (path, size, response) => createReadStream(path).pipe(response),
  gzip: (path, size, response) => {
    const bytes = gzipSync(readFileSync(path))
    response.setHeader('content-encoding', 'gzip')
    response.setHeader('content-length', bytes.length)
    response.end(bytes)
  },
  cut: (path, size, response) => {
    response.setHeader('content-length', size)
    response.write(readFileSync(path).subarray(0, size / 2), () => response.destroy())
  },
  short: (path, size, response) => {
    const bytes = readFileSync(path).subarray(0, size / 2)
    response.setHeader('content-length', bytes.length)
    response.end(bytes)
  },
  slow: async (path, size, response) => {
    response.setHeader('content-length', size)
    const bytes = readFileSync(path)
    const step = Math.ceil(size / 10)
    for (let start = 0; start < size && !response.destroyed; start += step) {
      response.write(bytes.subarray(start, start + step))
      await new Promise(resolve => setTimeout(resolve, 100))
    }
    response.end()
  }
}

const control = (what, response) => {
  if (what === 'off') off = true
  if (what === 'on') off = false
  response.end(String(count))
}

createServer(answer).listen(PORT)
createServer((request, response) => {
  response.setHeader('access-control-allow-origin', '*')
  answer(request, response)
}).listen(PORT + 1)
