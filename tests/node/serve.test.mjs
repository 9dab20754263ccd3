// `tritloom serve`: OpenAI's interface over HTTP, asked by OpenAI's own client at a real port.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { connect } from 'node:net'
import { networkInterfaces } from 'node:os'
import { after, test } from 'node:test'
import OpenAI from 'openai'
import { inRoot } from '../../scripts/paths.mjs'
import { GOLDEN, goldens } from './support.mjs'

const { serve } = await import(inRoot('pkg', 'node', 'serve.js'))

const TEXT = goldens.find(({ name }) => name === 'who').greedy_text
const messages = [{ role: 'user', content: 'Who are you?' }]
const hello = { model: 'any', messages, max_tokens: 40, temperature: 0 }

/** `tritloom serve` in a process of its own; the address that it prints. */
const started = async env => {
  const child = spawn(process.execPath, [inRoot('pkg', 'node', 'cli.js'), 'serve', '--model', GOLDEN, '--port', '0'], { env: { ...process.env, ...env } })
  after(() => child.kill())
  let said = ''
  child.stderr.setEncoding('utf8').on('data', text => { said += text })
  for await (const text of child.stdout.setEncoding('utf8')) {
    const [, address] = / at (http:\S+)\n/.exec(said += text) ?? []
    if (address) return { address, child }
  }
  throw new Error(said)
}

const { address, child } = await started({ TRITLOOM_KEY: 'secret' })
const client = new OpenAI({ baseURL: address, apiKey: 'secret', maxRetries: 0 })

test('the client of OpenAI gets an answer, whole and in chunks, and the models', async () => {
  assert.match(address, /^http:\/\/localhost:\d+\/v1$/)
  const whole = await client.chat.completions.create(hello)
  assert.equal(whole.choices[0].message.content, TEXT)
  let text = ''
  for await (const { choices } of await client.chat.completions.create({ ...hello, stream: true })) {
    text += choices[0]?.delta.content ?? ''
  }
  assert.equal(text, TEXT)
  assert.equal((await client.responses.create({ model: 'any', input: 'Who are you?', max_output_tokens: 40, temperature: 0 })).output_text, TEXT)
  assert.equal((await client.models.list()).data.length, 1)
})

test('a hundred calls at once each get their text', async () => {
  const calls = Array.from({ length: 100 }, (_, n) => n % 2 === 0
    ? client.chat.completions.create({ ...hello, max_tokens: 4 }).then(({ choices }) => choices[0].message.content)
    : client.chat.completions.create({ ...hello, max_tokens: 4, stream: true }).then(async stream => {
      let text = ''
      for await (const { choices } of stream) text += choices[0]?.delta.content ?? ''
      return text
    }))
  const texts = new Set(await Promise.all(calls))
  assert.equal(texts.size, 1)
  assert.ok(TEXT.startsWith([...texts][0]) && [...texts][0].length > 4, [...texts][0])
})

test('calls whose clients go away make room for others', async () => {
  const stop = new AbortController()
  const calls = Array.from({ length: 100 }, (_, n) =>
    client.chat.completions.create({ ...hello, max_tokens: 30, stream: true }, n % 2 === 0 ? { signal: stop.signal } : {})
      .then(async stream => {
        let text = ''
        for await (const { choices } of stream) text += choices[0]?.delta.content ?? ''
        return text
      }))
  await Promise.race(calls)
  stop.abort()
  const [gone, stayed] = [0, 1].map(rest => Promise.allSettled(calls.filter((_, n) => n % 2 === rest)))
  assert.ok((await gone).some(({ status }) => status === 'rejected'))
  for (const { value } of await stayed) assert.ok(TEXT.startsWith(value) && value !== '', value)
  assert.equal((await client.chat.completions.create(hello)).choices[0].message.content, TEXT)
})

test('without the key, nothing', async () => {
  for (const apiKey of ['wrong', 'secret ', '']) {
    const { status } = await fetch(`${address}/models`, { headers: apiKey ? { authorization: `Bearer ${apiKey}` } : {} })
    assert.equal(status, apiKey === 'secret ' ? 200 : 401, `'${apiKey}'`)
  }
  const wrong = new OpenAI({ baseURL: address, apiKey: 'wrong', maxRetries: 0 })
  await assert.rejects(wrong.chat.completions.create(hello), { status: 401, code: 'invalid_api_key' })
})

test('wrong requests are errors in OpenAI\'s form', async () => {
  await assert.rejects(client.chat.completions.create({ ...hello, messages: [] }), { status: 400, code: 'empty_array' })
  await assert.rejects(client.embeddings.create({ model: 'any', input: 'a' }), { status: 400, code: 'bad-option', message: /pooling/ })
  await assert.rejects(client.images.generate({ prompt: 'a' }), { status: 404, code: 'unknown_url' })
  const headers = { authorization: 'Bearer secret' }
  assert.equal((await fetch(`${address}/chat/completions`, { method: 'POST', body: '{', headers })).status, 400)
  assert.equal((await fetch(`${address}/chat/completions`, { headers })).status, 405)
})

test('it ends by a signal', async () => {
  child.kill('SIGINT')
  const [status] = await new Promise(resolve => child.once('close', (...end) => resolve(end)))
  assert.equal(status, 0)
  await assert.rejects(fetch(address))
})

/** A server of a model that is made by hand. */
const served = async (model, options = {}) => {
  const server = await serve(model, { port: 0, host: '127.0.0.1', ...options })
  after(() => server.close())
  return server.address.replace('/v1', '')
}

/** A model whose answer is a stream without an end. */
const endless = () => {
  const model = { written: 0, stopped: false }
  const chunk = new Uint8Array(64 << 10)
  model.fetch = async (url, { signal }) => new Response(new ReadableStream({
    async pull(controller) {
      await new Promise(setImmediate)
      signal.throwIfAborted()
      model.written += chunk.length
      controller.enqueue(chunk)
    },
    cancel() { model.stopped = true }
  }))
  return model
}

const hasIpv6 = () => Object.values(networkInterfaces()).flat().some(({ address }) => address === '::1')

const until = async what => { while (!what()) await new Promise(resolve => setTimeout(resolve, 10)) }

/** A request by hand: the status, and the whole answer. */
const raw = (origin, text) => new Promise((resolve, reject) => {
  const socket = connect(Number(new URL(origin).port), '127.0.0.1', () => socket.write(text))
  let said = ''
  socket.setEncoding('utf8').on('data', more => { said += more })
  socket.on('end', () => resolve({ status: Number(said.split(' ')[1]), said })).on('error', reject)
})

test('localhost is both of its addresses, and what others reach is no host of its own', async t => {
  const model = { fetch: async () => new Response('yes') }
  const evil = 'GET /v1/any HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n'
  for (const [host, address, everywhere, status] of [
    ['localhost', /^http:\/\/localhost:\d+\/v1$/, false, 403], ['127.0.0.1', /^http:\/\/127\.0\.0\.1:/, false, 403],
    ['0.0.0.0', /^http:\/\/localhost:/, true, 200]
  ]) {
    const server = await serve(model, { port: 0, host })
    t.after(() => server.close())
    assert.match(server.address, address)
    assert.equal(server.isEverywhere, everywhere)
    assert.equal((await raw(server.address, evil)).status, status, host)
    const { port } = new URL(server.address)
    const hosts = host === 'localhost' && hasIpv6() ? ['localhost', '127.0.0.1', '[::1]'] : ['127.0.0.1']
    for (const name of hosts) assert.equal((await fetch(`http://${name}:${port}/v1/any`)).status, 200, name)
  }
})

test('requests wait for the model, and end with the server if it does not come', async () => {
  let loaded
  const model = new Promise(resolve => { loaded = resolve })
  const origin = await served(model)
  const early = fetch(`${origin}/v1/any`)
  loaded({ fetch: async () => new Response('yes') })
  assert.equal((await early).status, 200)
  const server = await serve(new Promise(() => {}), { port: 0, host: '127.0.0.1' })
  const waiting = assert.rejects(fetch(`${server.address}/any`))
  await new Promise(resolve => setTimeout(resolve, 100))
  server.close()
  await waiting
})

test('a client that goes away ends its answer', async () => {
  const model = endless()
  const origin = await served(model)
  const stop = new AbortController()
  await fetch(`${origin}/v1/any`, { signal: stop.signal })
  stop.abort()
  await until(() => model.stopped)
})

test('a client that does not read is not written to', async () => {
  const model = endless()
  const origin = await served(model)
  const socket = connect(Number(new URL(origin).port), '127.0.0.1')
  socket.write('GET /v1/any HTTP/1.1\r\nHost: localhost\r\n\r\n')
  socket.pause()
  let before = -1
  while (model.written !== before) {
    before = model.written
    await new Promise(resolve => setTimeout(resolve, 200))
  }
  assert.ok(before < 64 << 20, String(before))
  socket.destroy()
  await until(() => model.stopped)
})

test('pages may ask only from the origins that are named, and by this machine\'s name', async () => {
  const model = { fetch: async () => new Response('yes') }
  const get = async (origin, headers, method = 'GET') => fetch(`${origin}/v1/any`, { method, headers })
  const [closed, open, all] = [
    await served(model), await served(model, { cors: ['https://a.example'], key: 'k' }), await served(model, { cors: ['*'] })
  ]
  assert.equal((await get(closed, {})).status, 200)
  assert.equal((await get(closed, { origin: 'https://a.example' })).status, 403)
  assert.equal((await get(open, { origin: 'https://b.example', authorization: 'Bearer k' })).status, 403)
  const found = await get(open, { origin: 'https://a.example', authorization: 'Bearer k' })
  assert.deepEqual([found.status, found.headers.get('access-control-allow-origin')], [200, 'https://a.example'])
  // A browser asks first, without the key.
  const asked = await get(open, { origin: 'https://a.example', 'access-control-request-headers': 'authorization' }, 'OPTIONS')
  assert.deepEqual([asked.status, asked.headers.get('access-control-allow-headers')], [204, 'authorization'])
  assert.equal((await get(all, { origin: 'null' })).status, 200)
  const { status } = await raw(closed, 'GET /v1/any HTTP/1.1\r\nHost: rebound.example\r\nConnection: close\r\n\r\n')
  assert.equal(status, 403)
})

test('bodies that are too large and requests that are none are refused', async () => {
  const model = { fetch: async (_, { body }) => new Response(String(body?.length)) }
  const origin = await served(model)
  const post = async body => fetch(`${origin}/v1/any`, { method: 'POST', body })
  assert.equal(await (await post(new Uint8Array(8 << 20))).text(), String(8 << 20))
  assert.equal((await post(new Uint8Array((8 << 20) + 1))).status, 413)
  const head = 'HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n'
  const endless = `POST /v1/any ${head}Transfer-Encoding: chunked\r\n\r\n${`100000\r\n${'a'.repeat(1 << 20)}\r\n`.repeat(9)}`
  assert.equal((await raw(origin, endless)).status, 413)
  assert.equal((await raw(origin, `TRACE / ${head}\r\n`)).status, 405)
  assert.equal((await raw(origin, `GET http:// ${head}\r\n`)).status, 404)
  assert.equal((await raw(origin, 'nothing\r\n\r\n')).status, 400)
  assert.equal((await raw(origin, `GET /v1/any ${head}\r\n`)).status, 200)
})

test('a model that fails answers with an error; in the middle, the connection breaks', async () => {
  const origin = await served({
    fetch: async url => {
      if (url.endsWith('/now')) throw new Error('it does not work')
      return new Response(new ReadableStream({ pull: controller => controller.error(new Error('late')) }))
    }
  })
  const now = await fetch(`${origin}/now`)
  assert.equal(now.status, 500)
  assert.match((await now.json()).error.message, /it does not work/)
  await assert.rejects(fetch(`${origin}/late`).then(response => response.text()))
})

test('a port that is taken is an error', async () => {
  const origin = await served(endless())
  await assert.rejects(serve(endless(), { port: Number(new URL(origin).port), host: '127.0.0.1' }), { code: 'EADDRINUSE' })
})
