// `npm run bench`: times a model in a real browser, on the package.
//
//   npm run bench -- [--model FILE | --shape 2b4t|tiny] [--decode 16,1024,3500] [--prefill 256,1024,3500]
//                    [--tokens 128] [--runs 5] [--loads 3] [--patience 120] [--head auto|f16|int8] [--lookup]
//                    [--profile] [--soak TOKENS] [--json] [--no-build]
//
// `--shape` has the command line write random weights of that shape to a temporary file, which is
// deleted at the end; with `--lookup`, which times prompt lookup, those of a model that counts, so that its
// answer copies a prompt that counts. A figure is taken fewer times where its runs would take longer than
// `--patience` seconds, and left out where one would. `--no-build` takes pkg/ as it is, where there is no
// Rust, and prints nothing else than the report; the error output tells what is being measured.
//
// CHROMIUM names the browser, CHROMIUM_GPU_FLAGS the flags it needs to reach the GPU; without them
// it is the tests' browser on SwiftShader, which says nothing about speed.
import { createReadStream, rmSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { extname, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { LoneBrowser } from './bench/alone.mjs'
import * as inPage from './bench/page.mjs'
import { figure, loadFigures, lookupGain, table } from './bench/table.mjs'
import { buildPackage } from './build/pkg.mjs'
import { inRoot } from './paths.mjs'
import { run } from './process.mjs'
import { main, Stop } from './report.mjs'
import { browser as browserStep, findBrowser } from './setup/browser.mjs'
import { ensure, setUp } from './setup/steps.mjs'

const SOFTWARE = '--headless=new --no-sandbox --enable-unsafe-webgpu --use-webgpu-adapter=swiftshader --enable-features=Vulkan'
/** The GPU's clock as it is: web pages get it in steps of a tenth of a millisecond. */
const EXACT_CLOCK = '--enable-webgpu-developer-features'
const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.wasm': 'application/wasm' }

await main(async () => {
  const options = parse()
  if (options.build) {
    await setUp()
    await ensure(browserStep)
    buildPackage()
  }
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(130))
  let file = resolve(options.model)
  if (options.shape) {
    file = join(tmpdir(), `ternlight-bench-${process.pid}.gguf`)
    process.once('exit', () => rmSync(file, { force: true }))
    const counting = options.lookup ? ['--counting'] : []
    run('cargo', ['run', '--quiet', '--release', '--', 'random', '--shape', options.shape, ...counting, file])
  }
  const report = await bench(file, options)
  console.log(options.json ? JSON.stringify(report, null, 2) : table(report))
})

function parse() {
  const { values } = parseArgs({
    allowNegative: true,
    options: {
      model: { type: 'string' },
      shape: { type: 'string' },
      decode: { type: 'string', default: '16,1024,3500' },
      prefill: { type: 'string', default: '256,1024,3500' },
      tokens: { type: 'string', default: '128' },
      runs: { type: 'string', default: '5' },
      loads: { type: 'string', default: '3' },
      patience: { type: 'string', default: '120' },
      head: { type: 'string', default: 'auto' },
      lookup: { type: 'boolean', default: false },
      profile: { type: 'boolean', default: false },
      soak: { type: 'string', default: '0' },
      json: { type: 'boolean', default: false },
      build: { type: 'boolean', default: true }
    }
  })
  if (values.model && values.shape) throw new Stop('--model and --shape exclude each other.')
  const number = name => {
    const value = Number(values[name])
    if (Number.isInteger(value) && value >= (['patience', 'soak'].includes(name) ? 0 : 1)) return value
    throw new Stop(`--${name} takes a number, not \`${values[name]}\`.`)
  }
  return {
    ...values,
    model: values.model ?? inRoot('models', 'tiny-stories.gguf'),
    decode: values.decode.split(',').map(Number),
    prefill: values.prefill.split(',').map(Number),
    tokens: number('tokens'),
    runs: number('runs'),
    loads: number('loads'),
    patience: number('patience'),
    soak: number('soak')
  }
}

/** The whole report, on the model in `file`. */
async function bench(file, { build, json, model, shape, lookup, ...options }) {
  const { chromium } = await import('playwright-core')
  const server = await serve(file)
  const flags = (process.env.CHROMIUM_GPU_FLAGS ?? SOFTWARE).split(' ')
  const args = flags.filter(flag => flag && !flag.startsWith('--remote-debugging-port'))
  const loads = []
  const start = performance.now()
  while (loads.length < options.loads && (loads.length === 0 || performance.now() - start < 1000 * options.patience)) {
    tell(`load ${loads.length + 1} of ${options.loads}`)
    loads.push(await loadAlone(server, args, options))
  }
  const browser = await chromium.launch({ executablePath: findBrowser(), args: [EXACT_CLOCK, ...args] })
  try {
    const page = await open(browser, server)
    await page.exposeFunction('tell', tell)
    await page.evaluate(inPage.load, { head: options.head })
    const measured = await page.evaluate(inPage.measure, options)
    const figures = [...loadFigures(loads), ...measured.figures].map(figure)
    if (lookup) tell('prompt lookup')
    const lookups = lookup ? await page.evaluate(inPage.lookups, options) : []
    const memory = { wasm: await wasmBytes(page) }
    if (options.soak > 0) tell(`${options.soak} tokens in a row`)
    const soak = options.soak > 0 ? await runSoak(page, options.soak) : undefined
    return { browser: `Chromium ${browser.version()}`, ...measured, figures, lookups: lookups.map(lookupGain), memory, soak }
  } finally {
    await browser.close()
    server.close()
  }
}

/** What is being measured: on a slow card it takes minutes. */
function tell(what) {
  process.stderr.write(`measuring: ${what}\n`)
}

/** One load from the server and one from storage, in a browser of their own. */
async function loadAlone(server, args, { head }) {
  const browser = await LoneBrowser.open(findBrowser(), args, `${address(server)}/scripts/bench/alone.html`)
  try {
    const cold = await browser.ask(inPage.loadTimes, { head, cache: 'refresh' })
    const stored = await browser.ask(inPage.loadTimes, { head, cache: 'only' })
    return { cold: { ...cold.answer, most: cold.most }, stored: { ...stored.answer, most: stored.most } }
  } finally {
    await browser.close()
  }
}

function address(server) {
  return `http://localhost:${server.address().port}`
}

async function open(browser, server) {
  const page = await (await browser.newContext()).newPage()
  page.on('pageerror', error => console.error(String(error)))
  await page.goto(`${address(server)}/`)
  return page
}

/** Many tokens in a row; memory is looked at after the first turn, when everything is in place. */
async function runSoak(page, tokens) {
  await page.evaluate(inPage.soak, 1)
  const before = await wasmBytes(page)
  await page.workers()[0].evaluate(inPage.watchBuffers)
  const soak = await page.evaluate(inPage.soak, tokens)
  const gpuBytesBefore = await page.evaluate(() => globalThis.model.info.gpuBytes)
  const gpuBytesAfter = gpuBytesBefore + await page.workers()[0].evaluate(() => globalThis.gpuBytesMade)
  return { ...soak, wasmBytesBefore: before, wasmBytesAfter: await wasmBytes(page), gpuBytesBefore, gpuBytesAfter }
}

/** The memory of the crate in the model's worker. */
function wasmBytes(page) {
  return page.workers()[0].evaluate(inPage.wasmBytes)
}

/** The package, the model and an empty page; the headers make the browser's clock exact. */
function serve(model) {
  const server = createServer((request, response) => {
    const path = new URL(request.url, 'http://localhost').pathname
    response.setHeader('cross-origin-opener-policy', 'same-origin')
    response.setHeader('cross-origin-embedder-policy', 'require-corp')
    if (path === '/') return response.setHeader('content-type', 'text/html').end('<!doctype html><title>bench</title>')
    const file = path === '/model.gguf' ? model : inRoot(path)
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
    createReadStream(file, { start, end, highWaterMark: 1 << 20 }).pipe(response)
  })
  return new Promise(resolve => server.listen(0, '127.0.0.1', () => resolve(server)))
}

function headers(file, length) {
  return { 'content-type': TYPES[extname(file)] ?? 'application/octet-stream', 'content-length': length, etag: '"bench"' }
}
