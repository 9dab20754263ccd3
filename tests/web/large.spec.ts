// A file as large as a real model's, through little memory: its embedding, 657 MB, and two layers of
// BitNet 2B-4T with random weights, made here.
import { execFileSync } from 'node:child_process'
import { mkdirSync, rmSync, statSync } from 'node:fs'
import { LoneBrowser } from './alone'
import type { Growth } from './alone'
import { expect, test } from './harness'

const MIB = 1 << 20
/** The most that loading may hold beyond the GPU's buffers. */
const MOST = 128 * MIB
const FILE = 'target/large.gguf'
/** Another file, such as all 30 layers, and the same questions. */
const LAYERS = process.env.LARGE_LAYERS ?? '2'

const DEFAULTS = { maxStorageBufferBindingSize: 128 * MIB, maxBufferSize: 256 * MIB }
const SIXTEENTH = { maxStorageBufferBindingSize: 8 * MIB, maxBufferSize: 16 * MIB }

/** What the page found. `agent` is what `performance.measureUserAgentSpecificMemory()` says. */
interface Found {
  seconds: number
  wasm: number
  agent: number
  gpuBytes: number
  dispatchesPerToken: number
  tokens: number[]
  stored: { complete: boolean, bytes: number }[]
}

test('a large file goes to the GPU and into storage in pieces, whatever the GPU grants', async ({ baseURL }) => {
  test.skip(process.platform !== 'linux', 'reads /proc')
  test.setTimeout(1_200_000)
  mkdirSync('target', { recursive: true })
  execFileSync('cargo', ['run', '--quiet', '--', 'random', '--layers', LAYERS, FILE], { stdio: 'inherit' })
  const { executablePath, args = [] } = test.info().project.use.launchOptions!
  // `measureUserAgentSpecificMemory` is for pages that are isolated from other origins; without the flag, the browser
  // measures when it next collects its garbage, which may be never.
  const page = `${baseURL}/as/isolated/tests/web/large.html`
  const browser = await LoneBrowser.open(executablePath!, [...args, '--enable-blink-features=ForceEagerMeasureMemory'], page)
  try {
    const load = async (name: string, limits: object, cache: 'use' | 'only') => {
      const { answer, most } = await browser.ask<Found>({ file: FILE, limits, cache })
      report(name, answer, most)
      return { ...answer, most }
    }
    const cold = await load('from the network', DEFAULTS, 'use')
    expect(cold.stored).toMatchObject([{ complete: true, bytes: statSync(FILE).size }])
    const warm = await load('from storage, with a sixteenth of WebGPU\'s default limits', SIXTEENTH, 'only')

    // The pieces: 6 of the embedding and as many of the head, then 79 of each.
    expect(warm.dispatchesPerToken).toBeGreaterThanOrEqual(cold.dispatchesPerToken + 2 * (79 - 6))
    expect(warm.tokens).toEqual(cold.tokens)
    expect(cold.tokens.length).toBe(6)
    for (const { wasm, agent, most } of [cold, warm]) {
      expect(wasm + agent).toBeLessThan(MOST)
      expect(most.renderer).toBeLessThan(MOST)
      // Where blobs lie until they are on the disk.
      expect(most.browser).toBeLessThan(MOST)
    }
  } finally {
    await browser.close()
    rmSync(FILE, { force: true })
  }
})

function report(name: string, found: Found, most: Growth): void {
  const mib = (bytes: number) => `${(bytes / MIB).toFixed(0)} MiB`
  const { size } = statSync(FILE)
  console.log(`${mib(size)} ${name}: ${found.seconds.toFixed(1)} s, ${mib(found.gpuBytes)} in GPU buffers`)
  console.log(`  wasm ${mib(found.wasm)}, measureUserAgentSpecificMemory() ${mib(found.agent)}`)
  console.log(`  at most, beyond the start: ${Object.entries(most).map(([kind, bytes]) => `${kind} ${mib(bytes)}`).join(', ')}`)
}
