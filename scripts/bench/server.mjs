// The server of the benchmark. It has a process of its own: the benchmark's is busy with measuring the browser.
import { fork } from 'node:child_process'
import { createReadStream, statSync } from 'node:fs'
import { createServer } from 'node:http'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { inRoot } from '../paths.mjs'

const HERE = fileURLToPath(import.meta.url)
const TYPES = {
  '.html': 'text/html', '.js': 'text/javascript', '.mjs': 'text/javascript', '.wasm': 'application/wasm'
}

/**
 * Serves an empty page; the repository; `model`, a file, as /model.gguf; and, if there are such, the folder
 * `peer` as /peer and the file `adapter` as /adapter.gguf. The headers make the browser's clock exact. Resolves to the server's address and the
 * function that ends it.
 * @param {string} model
 * @param {string} [peer]
 * @param {string} [adapter]
 * @returns {Promise<{ address: string, close: () => void }>}
 */
export async function serve(model, peer = '', adapter = '') {
  const server = fork(HERE, [model, peer, adapter])
  const address = await new Promise((resolve, reject) => {
    server.once('message', resolve)
    server.once('exit', () => reject(new Error('the server did not start')))
  })
  return { address: String(address), close: () => server.kill() }
}

if (process.argv[1] === HERE) listen(...process.argv.slice(2))

/** In the server's process. */
function listen(...files) {
  const server = createServer((request, response) => answer(request, response, files))
  server.listen(0, '127.0.0.1', () => process.send?.(`http://localhost:${server.address().port}`))
  process.once('disconnect', () => process.exit())
}

function answer(request, response, files) {
  const path = new URL(request.url, 'http://localhost').pathname
  response.setHeader('cross-origin-opener-policy', 'same-origin')
  response.setHeader('cross-origin-embedder-policy', 'require-corp')
  if (path === '/')
    return response
      .setHeader('content-type', 'text/html')
      .end('<!doctype html><title>bench</title>')
  const file = fileFor(path, files)
  let size
  try {
    ;({ size } = statSync(file))
  } catch {
    return response.writeHead(404).end()
  }
  // Ranges, as static hosts have them, let the package fetch several parts at a time.
  const asked = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '')
  const [start, end] = asked
    ? [Number(asked[1]), Math.min(Number(asked[2]), size - 1)]
    : [0, size - 1]
  const range = { 'content-range': `bytes ${start}-${end}/${size}` }
  if (asked) response.writeHead(206, { ...headers(file, end - start + 1), ...range })
  else response.writeHead(200, headers(file, size))
  createReadStream(file, { start, end, highWaterMark: 1 << 20 }).pipe(response)
}

function fileFor(path, [model, peer, adapter]) {
  if (path === '/model.gguf') return model
  if (adapter && path === '/adapter.gguf') return adapter
  return peer && path.startsWith('/peer/') ? join(peer, path.slice('/peer/'.length)) : inRoot(path)
}

function headers(file, length) {
  const type = TYPES[extname(file)] ?? 'application/octet-stream'
  return { 'content-type': type, 'content-length': length, etag: '"bench"' }
}
