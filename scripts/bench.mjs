// `npm run bench`: times a model in a real browser, on the package as built.
//
//   npm run bench -- [--model FILE] [--decode 16,1024,3500] [--prefill 256,1024,3500]
//                    [--tokens 128] [--runs 5] [--profile] [--json]
//
// CHROMIUM names the browser, CHROMIUM_GPU_FLAGS the flags it needs to reach the GPU; without them
// it is the tests' browser on SwiftShader, which says nothing about speed.
import { createReadStream, statSync } from 'node:fs'
import { createServer } from 'node:http'
import { extname, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { chromium } from 'playwright-core'

const { values: options } = parseArgs({
  options: {
    model: { type: 'string', default: 'models/tiny-stories.gguf' },
    decode: { type: 'string', default: '16,1024,3500' },
    prefill: { type: 'string', default: '256,1024,3500' },
    tokens: { type: 'string', default: '128' },
    runs: { type: 'string', default: '5' },
    profile: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false }
  }
})
const lengths = text => text.split(',').map(Number)

const SOFTWARE = '--headless=new --no-sandbox --enable-unsafe-webgpu --use-webgpu-adapter=swiftshader --enable-features=Vulkan'
const TYPES = { '.js': 'text/javascript', '.wasm': 'application/wasm' }

const server = await serve(resolve(options.model))
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: (process.env.CHROMIUM_GPU_FLAGS ?? SOFTWARE).split(' ').filter(flag => !flag.startsWith('--remote-debugging-port'))
})
try {
  const page = await browser.newPage()
  page.on('pageerror', error => console.error(String(error)))
  await page.goto(`http://localhost:${server.address().port}/`)
  const report = await page.evaluate(measure, {
    decode: lengths(options.decode),
    prefill: lengths(options.prefill),
    tokens: Number(options.tokens),
    runs: Number(options.runs),
    profile: options.profile
  })
  report.browser = browser.version()
  console.log(options.json ? JSON.stringify(report, null, 2) : table(report))
} finally {
  await browser.close()
  server.close()
}

/** The package, the model and an empty page; the headers make the browser's clock exact. */
function serve(model) {
  const server = createServer((request, response) => {
    const path = new URL(request.url, 'http://localhost').pathname
    response.setHeader('cross-origin-opener-policy', 'same-origin')
    response.setHeader('cross-origin-embedder-policy', 'require-corp')
    if (path === '/') return response.setHeader('content-type', 'text/html').end('<!doctype html><title>bench</title>')
    const file = path === '/model.gguf' ? model : join(import.meta.dirname, '..', path)
    let size
    try {
      ({ size } = statSync(file))
    } catch {
      return response.writeHead(404).end()
    }
    // With ranges, as static hosts have them: the package then fetches several parts at a time.
    const asked = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '')
    const [start, end] = asked ? [Number(asked[1]), Math.min(Number(asked[2]), size - 1)] : [0, size - 1]
    if (asked) response.writeHead(206, { ...headers(file, end - start + 1), 'content-range': `bytes ${start}-${end}/${size}` })
    else response.writeHead(200, headers(file, size))
    createReadStream(file, { start, end }).pipe(response)
  })
  return new Promise(resolve => server.listen(0, '127.0.0.1', () => resolve(server)))
}

const headers = (file, length) => ({
  'content-type': TYPES[extname(file)] ?? 'application/octet-stream', 'content-length': length, etag: '"bench"'
})

/** Runs in the page. */
async function measure({ decode, prefill, tokens, runs, profile }) {
  const { BitNet } = await import('/pkg/index.js')
  const seconds = async job => {
    const start = performance.now()
    const value = await job()
    return [value, (performance.now() - start) / 1000]
  }
  const [first, cold] = await seconds(() => BitNet.load('/model.gguf'))
  await first.dispose()
  const [model, cached] = await seconds(() => BitNet.load('/model.gguf'))
  const { contextLength, vocabSize } = model.info
  // Ids that no other run's prompt begins with, so that nothing is reused.
  const prompt = (length, run) =>
    Uint32Array.from({ length }, (_, i) => (i * 31 + run * 977 + length * 13 + 1) % Math.min(vocabSize, 4000))
  const generate = async (length, run, maxTokens) => {
    const generation = model.generate(prompt(length, run), { maxTokens })
    for await (const _ of generation.tokens());
    return generation.stats
  }
  const figures = []
  const add = (what, unit, values) => {
    values.sort((a, b) => a - b)
    figures.push({ what, unit, median: values[values.length >> 1], least: values[0], most: values.at(-1) })
  }
  // One run more than is counted: the first warms up.
  for (const length of prefill.filter(length => length < contextLength)) {
    const times = []
    for (let run = 0; run <= runs; run++) times.push((await generate(length, run, 1)).timeToFirstToken)
    times.shift()
    add(`prefill, ${length}-token prompt`, 'tok/s', times.map(ms => length / ms * 1000))
    add(`time to first token, ${length}-token prompt`, 'ms', times)
  }
  for (const length of decode.filter(length => length + tokens < contextLength)) {
    const rates = []
    for (let run = 0; run <= runs; run++) rates.push((await generate(length, run, tokens)).decodeTokensPerSecond)
    rates.shift()
    add(`decode, ${length} tokens of context`, 'tok/s', rates)
  }
  const profiles = []
  for (const context of profile ? decode.filter(length => length < contextLength) : []) {
    await model.profile(context)
    await model.profile(context)
    profiles.push({ context, kernels: await model.profile(context) })
  }
  return { info: model.info, load: { cold, cached }, figures, profiles }
}

function table({ browser, info, load, figures, profiles }) {
  const lines = [
    `${info.name} on ${info.adapter}, Chromium ${browser}`,
    `${(info.bytes / 1e9).toFixed(2)} GB file, ${(info.gpuBytes / 1e9).toFixed(2)} GB on the GPU, ${info.dispatchesPerToken} dispatches per token`,
    `loaded in ${load.cold.toFixed(2)} s from the server, in ${load.cached.toFixed(2)} s from storage`,
    `kernels: ${info.kernels.join(' ')}`,
    ''
  ]
  for (const { what, unit, median, least, most } of figures) {
    lines.push(`${what.padEnd(44)} ${median.toFixed(1).padStart(9)} ${unit.padEnd(6)} (${least.toFixed(1)} to ${most.toFixed(1)})`)
  }
  for (const { context, kernels } of profiles) {
    const total = kernels.reduce((sum, { microseconds }) => sum + microseconds, 0)
    lines.push('', `one token after ${context}: ${total.toFixed(0)} us in kernels`)
    for (const { kernel, calls, microseconds } of kernels) {
      lines.push(`  ${kernel.padEnd(28)} ${String(calls).padStart(4)} x ${(microseconds / calls).toFixed(1).padStart(7)} us = ${microseconds.toFixed(0).padStart(8)} us`)
    }
  }
  return lines.join('\n')
}
