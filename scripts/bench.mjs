// `npm run bench`: times a model in a real browser, with the package as it is published.
//
//   npm run bench -- [--model FILE | --shape SHAPE [--embedding-deviation D]]
//                    [--decode 16,1024,3500] [--prefill 16,256,1024,3500] [--tokens 128]
//                    [--runs 5] [--loads 3] [--patience 120] [--context N]
//                    [--backend webgpu|cpu] [--threads N] [--lm-head auto|f16|int8] [--max-gpu-bytes N] [--kv f16|f32|int8] [--lookup] [--sampling]
//                    [--options] [--batch] [--format] [--decide QUESTIONS] [--adapter-rank N] [--profile]
//                    [--soak TOKENS] [--visits | --limits | --embed] [--no-matrix-units] [--deterministic]
//                    [--peer wllama|node-llama-cpp|DIR] [--browser chromium|firefox] [--json] [--no-build]
//
//   --shape     random weights of that shape, in a temporary file that is deleted at the end:
//               2b4t, tiny, bonsai-8b and others that `tritloom random --help` lists
//   --embedding-deviation  draws the values of the embedding from a normal distribution of this
//               standard deviation; at 0.5, some rows of 2b4t have values of 2 and more
//   --backend   what computes the model; by default the GPU. --limits is about the GPU alone.
//   --threads   the most threads of the CPU; by default as many as a page takes; with --peer the number of them
//   --context   loads the model with a context of N tokens; by default it has what 1 GiB holds
//   --lookup    times prompt lookup. With --shape, the model then counts, so that its answer copies
//               a prompt that counts.
//   --sampling  also times answers that are drawn: by the temperature alone, with top-k and top-p, with
//               top-p alone and with min-p
//   --options   also times answers with penalties, logit biases and logprobs; with --lookup those too
//   --batch     also times as many answers at once as decode together
//   --format    also times answers that are held to a format, beside free ones
//   --decide    also asks this many yes-or-no questions about one text, with `decide` and with
//               `generate`, and times both
//   --adapter-rank  with --shape, also times prompts and decoding with an adapter of random values and this
//               rank on all matrices of the layers
//   --visits    times only loads, --loads of each: first visits that store and that do not, in a new
//               browser for which the GPU's driver has compiled nothing yet (on Linux), and second
//               ones in the same browser; until the model can be used, until all is stored, until
//               all is compiled
//   --limits    times only decoding, with all that the card has and with less: bindings of 128 MiB, no
//               subgroups, no products of four int8 values at once
//   --embed     times only vectors: of short texts and of long ones, and prompts beside them
//               --visits, --limits, --embed and --peer refuse what adds figures: --lookup, --sampling,
//               --options, --batch, --format, --decide, --adapter-rank, --profile, --soak
//   --no-matrix-units  does without them where the browser offers them
//   --deterministic  loads the model with that option
//   --patience  seconds for each figure. Where its runs take longer, there are fewer of them; where
//               a single run would, the figure is left out.
//   --peer      compares with another engine on the same file in one run: wllama in the same browser;
//               node-llama-cpp, which is for the CPU, in Node, beside the command line too. Both are builds of
//               llama.cpp, are fetched from npm, and with --backend cpu they run on one thread and on all, or on
//               --threads alone. Or with a built 0xBitNet in DIR; --prefill is then in words.
//   --browser   firefox has only the usual report and its additions but --soak: nothing drives it from
//               outside. FIREFOX names it.
//   --no-build  takes pkg/ as it is, for a machine without Rust; prints only the report
//
// Standard error says what is being measured.
//
// CHROMIUM names the browser, CHROMIUM_GPU_FLAGS the flags with which it reaches the GPU. Without
// them it runs on SwiftShader, as in the tests, which says nothing about speed.
import { rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { browserFlags, openAlone } from './bench/open.mjs'
import * as inPage from './bench/page.mjs'
import { comparePeer, comparisonTable, peerFolder, PROMPTS } from './bench/peer.mjs'
import { compareLlama, fetchPeer, LLAMA_LENGTHS, LLAMA_PEERS, llamaTable } from './bench/llama.mjs'
import { serve } from './bench/server.mjs'
import {
  embedTable, figure, limitsTable, loadFigures, lookupGain, table, VISITS, visitsTable
} from './bench/table.mjs'
import { buildPackage } from './build/pkg.mjs'
import { inRoot } from './paths.mjs'
import { run } from './process.mjs'
import { main, Stop } from './report.mjs'
import { browser as browserStep, findBrowser } from './setup/browser.mjs'
import { ensure, setUp } from './setup/steps.mjs'

/** The GPU's exact clock: by default web pages see steps of a tenth of a millisecond. */
const EXACT_CLOCK = '--enable-webgpu-developer-features'
/** The features that a card may lack, as options of a load. */
const LIMITS = [
  ['with everything', {}],
  ['bindings of 128 MiB', { limits: { maxStorageBufferBindingSize: 128 << 20 } }],
  ['without subgroups', { features: { subgroups: false } }],
  ['without packed dot', { features: { packedDot: false } }],
  ['without both', { features: { subgroups: false, packedDot: false } }]
]
/** Each is a report of its own. */
const REPORTS = ['peer', 'visits', 'limits', 'embed']
/** Each adds figures to the usual report. */
const ADDITIONS = [
  'lookup', 'sampling', 'options', 'batch', 'format', 'decide', 'adapter-rank', 'profile', 'soak'
]
/** The options that `--options` asks for, with as many biases as an OpenAI client may send. */
const OPTIONS = {
  penalties: { repeatPenalty: 1.1, presencePenalty: 0.3, frequencyPenalty: 0.3 },
  logitBias: { logitBias: Object.fromEntries(Array.from({ length: 300 }, (_, id) => [id, -1])) },
  logprobs: { logprobs: 5 }
}

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
    file = join(tmpdir(), `tritloom-bench-${process.pid}.gguf`)
    process.once('exit', () => rmSync(file, { force: true }))
    const deviation = options['embedding-deviation']
    const weights = [
      ...(options.lookup ? ['--counting'] : []),
      ...(deviation ? [`--embedding-deviation=${deviation}`] : [])
    ]
    const random = (...args) =>
      run('cargo', ['run', '--quiet', '--release', '--', 'random', '--shape', options.shape, ...args])
    random(...weights, file)
    if (options.adapterRank) {
      options.adapter = `${file}.adapter`
      process.once('exit', () => rmSync(options.adapter, { force: true }))
      random('--adapter-rank', String(options.adapterRank), options.adapter)
    }
  }
  const [measure, inWords] = LLAMA_PEERS.includes(options.peer)
    ? [besideLlama, llamaTable]
    : options.peer
      ? [beside, comparisonTable]
      : options.visits
        ? [visits, visitsTable]
        : options.limits
          ? [limits, limitsTable]
          : options.embed
            ? [embeds, embedTable]
            : [bench, table]
  const report = await measure(file, options)
  console.log(options.json ? JSON.stringify(report, null, 2) : inWords(report))
})

function parse() {
  const { values } = parseArgs({
    allowNegative: true,
    options: {
      model: { type: 'string' },
      shape: { type: 'string' },
      'embedding-deviation': { type: 'string' },
      decode: { type: 'string' },
      prefill: { type: 'string' },
      tokens: { type: 'string', default: '128' },
      runs: { type: 'string', default: '5' },
      loads: { type: 'string', default: '3' },
      patience: { type: 'string', default: '120' },
      context: { type: 'string' },
      backend: { type: 'string', default: 'webgpu' },
      threads: { type: 'string' },
      'lm-head': { type: 'string', default: 'auto' },
      'max-gpu-bytes': { type: 'string' },
      kv: { type: 'string', default: 'f16' },
      lookup: { type: 'boolean', default: false },
      sampling: { type: 'boolean', default: false },
      options: { type: 'boolean', default: false },
      batch: { type: 'boolean', default: false },
      format: { type: 'boolean', default: false },
      decide: { type: 'string', default: '0' },
      'adapter-rank': { type: 'string', default: '0' },
      visits: { type: 'boolean', default: false },
      limits: { type: 'boolean', default: false },
      embed: { type: 'boolean', default: false },
      profile: { type: 'boolean', default: false },
      soak: { type: 'string', default: '0' },
      'matrix-units': { type: 'boolean', default: true },
      deterministic: { type: 'boolean', default: false },
      peer: { type: 'string' },
      browser: { type: 'string', default: 'chromium' },
      json: { type: 'boolean', default: false },
      build: { type: 'boolean', default: true }
    }
  })
  if (values.model && values.shape) throw new Stop('--model and --shape exclude each other.')
  const deviates = 'embedding-deviation'
  if (values[deviates] && !values.shape) throw new Stop(`--${deviates} goes with --shape only.`)
  const given = name => values[name] && values[name] !== '0'
  if (given('adapter-rank') && !values.shape) throw new Stop('--adapter-rank goes with --shape only.')
  const exclude = names => {
    const [one, other] = names.filter(given)
    if (other) throw new Stop(`--${one} and --${other} exclude each other.`)
  }
  exclude(REPORTS)
  for (const addition of ADDITIONS) exclude([...REPORTS, addition])
  exclude(['peer', 'context'])
  const backends = ['webgpu', 'cpu']
  if (!backends.includes(values.backend)) throw new Stop(`--backend takes ${backends.join(' or ')}.`)
  if (values.limits && values.backend === 'cpu') throw new Stop('--limits is about the GPU.')
  if (values.peer === 'node-llama-cpp' && values.backend !== 'cpu')
    throw new Stop('--peer node-llama-cpp goes with --backend cpu only.')
  if (!['chromium', 'firefox'].includes(values.browser))
    throw new Stop(`--browser takes chromium or firefox, not \`${values.browser}\`.`)
  const ofChromium = values.browser === 'firefox' && [...REPORTS, 'soak'].find(given)
  if (ofChromium) throw new Stop(`--${ofChromium} goes with Chromium only.`)
  exclude(['lookup', deviates])
  const number = name => {
    const value = Number(values[name])
    const least = ['patience', 'soak', 'decide', 'adapter-rank'].includes(name) ? 0 : 1
    if (Number.isInteger(value) && value >= least) return value
    throw new Stop(`--${name} takes a whole number from ${least}, not \`${values[name]}\`.`)
  }
  const numbers = (name, text) => {
    const found = text.split(',').map(Number)
    if (found.every(value => Number.isInteger(value) && value >= 1)) return found
    throw new Stop(`--${name} takes whole numbers from 1, separated by commas, not \`${text}\`.`)
  }
  const isLlama = LLAMA_PEERS.includes(values.peer)
  const lengths = isLlama
    ? LLAMA_LENGTHS
    : { decode: '16,1024,3500', prefill: values.peer ? PROMPTS : '16,256,1024,3500' }
  return {
    ...values,
    options: values.options ? OPTIONS : undefined,
    model: values.model ?? inRoot('models', 'tiny-stories.gguf'),
    decode: numbers('decode', values.decode ?? lengths.decode),
    prefill: numbers('prefill', values.prefill ?? lengths.prefill),
    tokens: number('tokens'),
    runs: number('runs'),
    loads: number('loads'),
    patience: number('patience'),
    context: values.context === undefined ? undefined : number('context'),
    threads: values.threads === undefined ? undefined : number('threads'),
    'max-gpu-bytes': values['max-gpu-bytes'] === undefined ? undefined : number('max-gpu-bytes'),
    soak: number('soak'),
    decide: number('decide'),
    adapterRank: number('adapter-rank'),
    peer: isLlama ? values.peer : values.peer && peerFolder(values.peer)
  }
}

/** The options of a load that say how the model is held, and on what. */
function held({ backend, threads, context, 'lm-head': lmHead, kv, deterministic, 'max-gpu-bytes': maxBytes, 'matrix-units': matrixUnits }) {
  return { backend, threads, context, lmHead, kv, deterministic, gpu: { maxBytes, features: { matrixUnits } } }
}

/** The comparison with the peer, on the model in `file`. */
async function beside(file, options) {
  const server = await serve(file, options.peer)
  try {
    return await comparePeer(findBrowser(), browserFlags(), server.address, options, tell)
  } finally {
    server.close()
  }
}

/** The comparison with a build of llama.cpp, on the model in `file`. */
async function besideLlama(file, options) {
  const folder = await fetchPeer(options.peer)
  if (options.build && options.peer === 'node-llama-cpp') run('cargo', ['build', '--quiet', '--release'])
  const server = await serve(file, folder)
  const browser = { executable: findBrowser(), flags: browserFlags() }
  try {
    return await compareLlama(file, server.address, { ...options, ...browser, folder }, tell)
  } finally {
    server.close()
  }
}

/** The whole report, on the model in `file`. */
async function bench(file, { build, json, model, shape, lookup, peer, visits, limits, embed, adapter, ...options }) {
  const server = await serve(file, undefined, adapter)
  const loads = []
  const start = performance.now()
  while (
    loads.length < options.loads &&
    (loads.length === 0 || performance.now() - start < 1000 * options.patience)
  ) {
    tell(`load ${loads.length + 1} of ${options.loads}`)
    loads.push(await loadAlone(server, options))
  }
  const opened = options.browser === 'firefox' ? firefoxPage(server) : chromiumPage(server)
  const { version, page, close } = await opened
  try {
    await page.evaluate(inPage.load, held(options))
    const measured = await page.evaluate(inPage.measure, options)
    const figures = [...loadFigures(loads), ...measured.figures].map(figure)
    if (lookup) tell('prompt lookup')
    const lookups = lookup ? await page.evaluate(inPage.lookups, options) : []
    const memory = page.workers ? { wasm: await wasmBytes(page) } : undefined
    if (options.soak > 0) tell(`${options.soak} tokens in a row`)
    const soak = options.soak > 0 ? await runSoak(page, options.soak) : undefined
    const gains = lookups.map(lookupGain)
    return {
      browser: version,
      ...measured,
      figures,
      lookups: gains,
      memory,
      soak
    }
  } finally {
    await close()
    server.close()
  }
}

/** A page of Chromium, for all that is measured after the loads. */
async function chromiumPage(server) {
  const { chromium } = await import('playwright-core')
  const browser = await chromium.launch({
    executablePath: findBrowser(),
    args: [EXACT_CLOCK, ...browserFlags()]
  })
  const page = await open(browser, server)
  await page.exposeFunction('tell', tell)
  return { version: `Chromium ${browser.version()}`, page, close: () => browser.close() }
}

/** The same of Firefox, which asks for its work. */
async function firefoxPage(server) {
  const browser = await openAlone(server, 'firefox')
  const evaluate = async (work, argument) => (await browser.ask(work, argument)).answer
  await evaluate(async () => {
    globalThis.tell = async () => {}
  })
  const version = /Firefox\/[\d.]+/.exec(await evaluate(async () => navigator.userAgent))[0]
  return { version: version.replace('/', ' '), page: { evaluate }, close: () => browser.close() }
}

/** Says what is being measured: on a slow card it takes minutes. */
function tell(what) {
  process.stderr.write(`measuring: ${what}\n`)
}

/** The times of loads alone, of the model in `file`. */
async function visits(file, options) {
  const server = await serve(file)
  const browser = await (await import('playwright-core')).chromium.launch({
    executablePath: findBrowser(),
    args: browserFlags()
  })
  const version = browser.version()
  await browser.close()
  const all = []
  try {
    for (let run = 1; run <= options.loads; run++) {
      tell(`visits ${run} of ${options.loads}`)
      const [first, second] = await loadsAlone(server, options, ['use', 'only'])
      const [notStored, again] = await loadsAlone(server, options, ['off', 'off'])
      all.push({ first, second, notStored, again })
    }
  } finally {
    server.close()
  }
  return { browser: `Chromium ${version}`, figures: loadFigures(all, VISITS).map(figure) }
}

/** Decoding as on smaller cards: the model in `file` is loaded anew for each. */
async function limits(file, options) {
  const { chromium } = await import('playwright-core')
  const server = await serve(file)
  const browser = await chromium.launch({ executablePath: findBrowser(), args: browserFlags() })
  const report = { browser: `Chromium ${browser.version()}`, limits: [] }
  try {
    const page = await open(browser, server)
    await page.exposeFunction('tell', what => tell(`${report.limits.at(-1).name}: ${what}`))
    for (const [name, gpu] of LIMITS) {
      report.limits.push({ name })
      const { gpu: { features }, ...base } = held(options)
      const capped = { ...gpu, features: { ...features, ...gpu.features } }
      await page.evaluate(inPage.load, { ...base, gpu: capped })
      const only = { ...options, prefill: [] }
      const { info, figures, leftOut } = await page.evaluate(inPage.measure, only)
      await page.evaluate(() => globalThis.model.dispose())
      report.info ??= info
      const decode = figures.filter(({ what }) => what.startsWith('decode')).map(figure)
      const { kernels, dispatchesPerToken } = info
      Object.assign(report.limits.at(-1), { kernels, dispatchesPerToken, figures: decode, leftOut })
    }
  } finally {
    await browser.close()
    server.close()
  }
  return report
}

/** The vectors of texts, of the model in `file`. */
async function embeds(file, options) {
  const server = await serve(file)
  const { version, page, close } = await chromiumPage(server)
  try {
    await page.evaluate(inPage.load, held(options))
    const { info, figures } = await page.evaluate(inPage.embeddings, options)
    return { browser: version, info, figures: figures.map(figure) }
  } finally {
    await close()
    server.close()
  }
}

/** Times a load from the server and one from storage, in a browser that does nothing else. */
async function loadAlone(server, options) {
  const [cold, stored] = await loadsAlone(server, options, ['refresh', 'only'])
  return { cold, stored }
}

/** Times loads one after the other, each with its `cache`, in a browser that does nothing else. */
async function loadsAlone(server, options, caches) {
  const browser = await openAlone(server, options.browser)
  try {
    const loads = []
    for (const cache of caches) {
      const { answer, most } = await browser.ask(inPage.loadTimes, { ...held(options), cache })
      loads.push({ ...answer, most })
    }
    return loads
  } finally {
    await browser.close()
  }
}

async function open(browser, server) {
  const page = await (await browser.newContext()).newPage()
  page.on('pageerror', error => console.error(String(error)))
  await page.goto(`${server.address}/`)
  return page
}

/** Generates many tokens in a row. Memory is first read after one token, when all buffers exist. */
async function runSoak(page, tokens) {
  await page.evaluate(inPage.soak, 1)
  const before = await wasmBytes(page)
  await page.workers()[0].evaluate(inPage.watchBuffers)
  const soak = await page.evaluate(inPage.soak, tokens)
  const gpuBytesBefore = await page.evaluate(() => globalThis.model.info.gpuBytes)
  const gpuBytesAfter =
    gpuBytesBefore + (await page.workers()[0].evaluate(() => globalThis.gpuBytesMade))
  return {
    ...soak,
    wasmBytesBefore: before,
    wasmBytesAfter: await wasmBytes(page),
    gpuBytesBefore,
    gpuBytesAfter
  }
}

/** The bytes of the crate's memory in the model's worker. */
function wasmBytes(page) {
  return page.workers()[0].evaluate(inPage.wasmBytes)
}
