// OpenAI's interface to a model over HTTP.
import { createHash, timingSafeEqual } from 'node:crypto'
import { createServer } from 'node:http'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { codeOf } from './owner.js'

/** The bytes of a request's body at most. */
const MAX_BODY = 8 << 20
/** Milliseconds in which a request must have come. */
const PATIENCE = 60_000

export interface ServeOptions {
  port: number
  /** The address to listen at. `localhost` are both addresses of this machine alone. */
  host: string
  /** The key that every request must have, as `Authorization: Bearer KEY`. */
  key?: string | undefined
  /** The origins of pages that may ask: `*` for all, none by default. */
  cors?: readonly string[]
  /** Hears of failures while it listens, such as too many connections. */
  onError?: (error: Error) => void
}

/** The part of a model that answers. */
interface Answering {
  fetch(url: string, init: RequestInit): Promise<Response>
}

/** A refusal, in OpenAI's form. */
class Refusal extends Error {
  constructor(readonly status: number, readonly code: string, message: string) {
    super(message)
  }
}

/** The methods that a `Request` can have. */
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']
/** Of an address, only the path counts. */
const HERE = 'http://localhost'

/** Names of this machine. A page of another site may lead its own name here, but cannot have one of these. */
const LOCAL = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?$/i
/** Addresses that no other machine reaches. */
const LOOPBACK = /^(?:127\.|::1$|::ffff:127\.)/
/** Those that are all addresses of this machine. */
const ALL = ['0.0.0.0', '::']

/** A server that listens. */
export interface Serving {
  /** Its address for clients on this machine, such as `http://localhost:8080/v1`. */
  address: string
  /** Whether other machines reach it at all addresses of this one. */
  isEverywhere: boolean
  /** Ends all connections. */
  close(): void
}

/** The rules by which a request is checked. */
interface Rules extends ServeOptions {
  /** Whether only programs of this machine reach the server. */
  isOnlyHere: boolean
}

/** Listens for requests, which wait until there is a model. Rejects with the system's error if it cannot listen. */
export async function serve(model: Answering | Promise<Answering>, options: ServeOptions): Promise<Serving> {
  const rules = { ...options, isOnlyHere: true }
  // A load that fails is the failure of another promise, too.
  const loaded = Promise.resolve(model)
  loaded.catch(() => {})
  const servers: Server[] = []
  const close = () => {
    for (const server of servers) {
      server.close()
      server.closeAllConnections()
    }
  }
  let { port } = options
  for (const host of options.host === 'localhost' ? ['127.0.0.1', '::1'] : [options.host]) {
    const server = createServer({ requestTimeout: PATIENCE }, (request, response) => {
      void answer(loaded, rules, request, response)
    })
    try {
      await listening(server, port, host)
    } catch (error) {
      // This machine has no IPv6.
      if (servers.length > 0 && ['EADDRNOTAVAIL', 'EAFNOSUPPORT'].includes(codeOf(error) ?? '')) continue
      close()
      throw error
    }
    // Otherwise a failure would end the program.
    server.on('error', error => options.onError?.(error))
    servers.push(server)
    port = addressOf(server).port
  }
  const first = addressOf(servers[0]!)
  rules.isOnlyHere = servers.every(server => LOOPBACK.test(addressOf(server).address))
  const isEverywhere = ALL.includes(first.address)
  return { address: `http://${isEverywhere ? 'localhost' : named(options.host, first)}:${port}/v1`, isEverywhere, close }
}

const listening = (server: Server, port: number, host: string): Promise<void> => new Promise((resolve, reject) => {
  server.once('error', reject)
  server.listen(port, host, () => {
    server.off('error', reject)
    resolve()
  })
})

const addressOf = (server: Server): AddressInfo => server.address() as AddressInfo

function named(host: string, { address, family }: AddressInfo): string {
  if (host === 'localhost') return host
  return family === 'IPv6' ? `[${address}]` : address
}

async function answer(
  model: Promise<Answering>, rules: Rules, request: IncomingMessage, response: ServerResponse
): Promise<void> {
  const gone = new AbortController()
  response.once('close', () => gone.abort())
  try {
    allowOrigin(rules, request, response)
    if (request.method === 'OPTIONS') {
      response.writeHead(204).end()
      return
    }
    check(rules, request)
    const { method = 'GET', url = '/' } = request
    if (!METHODS.includes(method)) throw new Refusal(405, 'method_not_supported', `Not allowed to ${method}.`)
    if (!URL.canParse(url, HERE)) throw new Refusal(404, 'unknown_url', `Invalid URL (${method} ${url})`)
    const body = method === 'GET' || method === 'HEAD' ? null : await bodyOf(request)
    const { signal } = gone
    const found = await (await model).fetch(new URL(url, HERE).href, { method, body, signal })
    response.writeHead(found.status, Object.fromEntries(found.headers))
    await send(found, response)
  } catch (error) {
    // The client has gone, or the model has ended in the middle of its answer.
    if (response.headersSent || gone.signal.aborted) response.destroy()
    else refuse(response, error)
  }
}

/** Lets pages of the allowed origins ask. */
function allowOrigin({ cors = [] }: ServeOptions, { headers }: IncomingMessage, response: ServerResponse): void {
  const { origin } = headers
  if (origin === undefined) return
  response.setHeader('vary', 'origin')
  if (!cors.includes('*') && !cors.includes(origin)) {
    throw new Refusal(403, 'origin_not_allowed', `Pages of ${origin} may not ask: see --cors.`)
  }
  response.setHeader('access-control-allow-origin', origin)
  response.setHeader('access-control-allow-methods', 'GET, POST')
  response.setHeader('access-control-allow-headers', headers['access-control-request-headers'] ?? '*')
  response.setHeader('access-control-max-age', '86400')
  // Browsers ask this for pages of the web that call a machine at home.
  if (headers['access-control-request-private-network']) {
    response.setHeader('access-control-allow-private-network', 'true')
  }
}

/** Refuses a request without the key, and one for another host's name. */
function check({ key, host, isOnlyHere }: Rules, { headers }: IncomingMessage): void {
  const asked = headers.host ?? ''
  // The name by which it was told to listen may be another one of this machine.
  if (isOnlyHere && !LOCAL.test(asked) && asked.replace(/:\d+$/, '').toLowerCase() !== host.toLowerCase()) {
    throw new Refusal(403, 'host_not_allowed', `This server is asked as localhost, not as ${asked || 'nothing'}.`)
  }
  if (key === undefined) return
  const given = /^Bearer (.*)$/i.exec(headers.authorization ?? '')?.[1] ?? ''
  const digest = (text: string) => createHash('sha256').update(text).digest()
  if (!timingSafeEqual(digest(given), digest(key))) {
    throw new Refusal(401, 'invalid_api_key', 'Incorrect API key provided.')
  }
}

async function bodyOf(request: IncomingMessage): Promise<Buffer<ArrayBuffer>> {
  const tooLarge = () => new Refusal(413, 'request_too_large', `The body has more than ${MAX_BODY} bytes.`)
  if (Number(request.headers['content-length'] ?? 0) > MAX_BODY) throw tooLarge()
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > MAX_BODY) throw tooLarge()
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** Sends a body as fast as the client takes it. */
async function send({ body }: Response, response: ServerResponse): Promise<void> {
  response.flushHeaders()
  const reader = body?.getReader()
  try {
    for (;;) {
      const { done, value } = await reader?.read() ?? { done: true, value: undefined }
      if (done) break
      if (!response.write(value)) await drained(response)
    }
    response.end()
  } finally {
    // This ends the answer if the client has gone. If the stream has failed, it rejects.
    reader?.cancel().catch(() => {})
  }
}

/** Resolves when more can be written; rejects when the client has gone. */
const drained = (response: ServerResponse): Promise<void> =>
  new Promise((resolve, reject) => {
    const end = (settle: () => void) => () => {
      response.off('drain', drain).off('close', close)
      settle()
    }
    const [drain, close] = [end(resolve), end(() => reject(new Error('the client has gone')))]
    response.on('drain', drain).on('close', close)
    if (response.destroyed) close()
  })

function refuse(response: ServerResponse, error: unknown): void {
  const { status, code, message } = error instanceof Refusal
    ? error : { status: 500, code: 'internal_error', message: error instanceof Error ? error.message : String(error) }
  const type = status >= 500 ? 'server_error' : 'invalid_request_error'
  // The rest of a body that is too large is not read.
  const more = status === 413 ? { connection: 'close' } : {}
  response.writeHead(status, { 'content-type': 'application/json', 'x-should-retry': 'false', ...more })
  response.end(JSON.stringify({ error: { message, type, param: null, code } }))
}
