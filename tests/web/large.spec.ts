// A file as large as a real model's, through little memory: its embedding, 657 MB, and two layers
// of BitNet 2B-4T with random weights, made here.
import { execFileSync } from 'node:child_process'
import { mkdirSync, rmSync, statSync } from 'node:fs'
import { chromiumFlags, LoneBrowser } from '../../scripts/bench/alone.mjs'
import { expect, test } from './harness'

const MIB = 1 << 20
/** Loading may hold this much beyond the GPU's buffers. */
const MAX_MEMORY = 128 * MIB
const FILE = 'target/large.gguf'
/** A larger file, such as one of all 30 layers, takes the same test. */
const LAYERS = process.env.LARGE_LAYERS ?? '2'

const DEFAULTS = { maxStorageBufferBindingSize: 128 * MIB, maxBufferSize: 256 * MIB }
const SIXTEENTH = { maxStorageBufferBindingSize: 8 * MIB, maxBufferSize: 16 * MIB }

interface Question {
  file: string
  limits: object
  cache: 'use' | 'only' | 'off'
  backend: 'webgpu' | 'cpu'
  context: number
}

/**
 * In the page. `agent` is what `performance.measureUserAgentSpecificMemory()` says, in bytes like
 * the rest.
 */
async function loadThere({ file, limits, cache, backend, context }: Question) {
  const here = new URL('../../', location.href)
  const { BitNet } = await import(`${here}pkg/index.js`)
  const script = `import '${here}tests/web/metered.mjs'; import '${here}pkg/protocol/worker.js'`
  const worker = new Worker(URL.createObjectURL(new Blob([script], { type: 'text/javascript' })), { type: 'module' })
  const started = performance.now()
  const model = await BitNet.load(new URL(file, here).href, { backend, worker, cache, threads: 2, gpu: { limits }, context })
  const seconds = (performance.now() - started) / 1000
  const channel = new BroadcastChannel('wasm')
  const answered = new Promise<number>(resolve => { channel.onmessage = ({ data }) => resolve(data) })
  channel.postMessage('how much?')
  const wasm = await answered
  const measured = performance as unknown as { measureUserAgentSpecificMemory(): Promise<{ bytes: number }> }
  const { bytes: agent } = await measured.measureUserAgentSpecificMemory()
  const tokens: number[] = []
  for await (const { id } of model.generate(Uint32Array.of(1, 2, 3), { maxTokens: 6 }).tokens()) tokens.push(id)
  const { gpuBytes, dispatchesPerToken } = model.info
  await model.dispose()
  worker.terminate()
  const stored: { complete: boolean, bytes: number }[] = await BitNet.cache.list()
  return { seconds, wasm, agent, gpuBytes: gpuBytes as number, dispatchesPerToken: dispatchesPerToken as number, tokens, stored }
}

type Found = Awaited<ReturnType<typeof loadThere>>

test('a large file goes to the GPU and into storage in parts, whatever the GPU grants', { tag: '@all' }, async ({ baseURL }) => {
  // It reads the memory of the browser's processes in /proc, which only Linux has.
  test.skip(process.platform !== 'linux', 'reads /proc')
  test.setTimeout(1_200_000)
  mkdirSync('target', { recursive: true })
  execFileSync('cargo', ['run', '--quiet', '--', 'random', '--layers', LAYERS, FILE], { stdio: 'inherit' })
  const { executablePath, args = [] } = test.info().project.use.launchOptions!
  // `measureUserAgentSpecificMemory` is for pages that are isolated from other origins; without the
  // flag, the browser measures when it next collects its garbage, which may be never.
  const page = `${baseURL}/as/isolated/scripts/bench/alone.html`
  const browser = await LoneBrowser.open(executablePath!, chromiumFlags([...args, '--enable-blink-features=ForceEagerMeasureMemory']), page)
  try {
    const load = async (name: string, limits: object, cache: 'use' | 'only') => {
      const { answer, most } = await browser.ask(loadThere, { file: FILE, limits, cache, backend: 'webgpu', context: 256 })
      report(name, answer, most)
      return { ...answer, most }
    }
    const cold = await load('from the network', DEFAULTS, 'use')
    expect(cold.stored).toMatchObject([{ complete: true, bytes: statSync(FILE).size }])
    const warm = await load('from storage, with a sixteenth of WebGPU\'s default limits', SIXTEENTH, 'only')

    // The embedding and the LM head are in 6 shards each, then in 79. One dispatch looks tokens up in five.
    expect(warm.dispatchesPerToken).toBeGreaterThanOrEqual(cold.dispatchesPerToken + 79 - 6 + 16 - 2)
    expect(warm.tokens).toEqual(cold.tokens)
    expect(cold.tokens.length).toBe(6)
    for (const { wasm, agent, most } of [cold, warm]) {
      expect(wasm + agent).toBeLessThan(MAX_MEMORY)
      expect(most.renderer).toBeLessThan(MAX_MEMORY)
      // This process has the blobs until they are on the disk.
      expect(most.browser).toBeLessThan(MAX_MEMORY)
      expect(most.together).toBeLessThan(MAX_MEMORY)
    }
  } finally {
    await browser.close()
    rmSync(FILE, { force: true })
  }
})

test('2B-4T on the CPU takes less than 1.9 GB in all', { tag: '@all' }, async ({ baseURL }) => {
  // It reads the memory of the browser's processes in /proc, which only Linux has.
  test.skip(process.platform !== 'linux', 'reads /proc')
  test.setTimeout(1_200_000)
  mkdirSync('target', { recursive: true })
  execFileSync('cargo', ['run', '--quiet', '--', 'random', '--shape', '2b4t', FILE], { stdio: 'inherit' })
  const { executablePath, args = [] } = test.info().project.use.launchOptions!
  const page = `${baseURL}/as/isolated/scripts/bench/alone.html`
  const browser = await LoneBrowser.open(executablePath!, chromiumFlags([...args, '--enable-blink-features=ForceEagerMeasureMemory']), page)
  try {
    // All the context that the model was made for.
    const { answer, most } = await browser.ask(loadThere, { file: FILE, limits: {}, cache: 'off', backend: 'cpu', context: 4096 })
    report('on the CPU', answer, most)
    expect(answer.tokens.length).toBe(6)
    expect(answer.wasm).toBeGreaterThan(statSync(FILE).size)
    expect(answer.wasm + answer.agent).toBeLessThan(1.9e9)
    expect(most.together).toBeLessThan(1.9e9)
  } finally {
    await browser.close()
    rmSync(FILE, { force: true })
  }
})

function report(name: string, found: Found, most: Record<string, number>): void {
  const mib = (bytes: number) => `${(bytes / MIB).toFixed(0)} MiB`
  const { size } = statSync(FILE)
  console.log(`${mib(size)} ${name}: ${found.seconds.toFixed(1)} s, ${mib(found.gpuBytes)} in GPU buffers`)
  console.log(`  wasm ${mib(found.wasm)}, measureUserAgentSpecificMemory() ${mib(found.agent)}`)
  console.log(`  at most, beyond the start: ${Object.entries(most).map(([kind, bytes]) => `${kind} ${mib(bytes)}`).join(', ')}`)
}
