// Random calls of the whole package, for as long as SOAK_MINUTES says. Each ends with the right
// answer or with a code, and memory is in the end where it was. SOAK_SEED repeats the calls of a run
// that failed: which of them meet depends on the time that each takes, so it may need several runs.
import { readFileSync } from 'node:fs'
import type { Page, Worker as Thread } from '@playwright/test'
import { wasmBytes, watchBuffers } from '../../scripts/bench/page.mjs'
import { expect, GOLDEN_MODEL, goldens, MIB, test } from './harness'
import type { RandomCalls } from './random-calls.mjs'

declare global {
  interface Window {
    calls: RandomCalls
  }
}

const MINUTES = Number(process.env.SOAK_MINUTES ?? 2)
const SEED = Number(process.env.SOAK_SEED ?? Date.now() % 1_000_000)
/** Milliseconds of a round. At its end there is no model, and memory is counted. */
const ROUND = Math.min(60_000, MINUTES * 60_000 / 6)
/** No call takes so long, however many run beside it. */
const BOUND = 60_000

/** The list in the package's types. */
const CODES = [...readFileSync('pkg/types.d.ts', 'utf8').split('type ErrorCode =')[1]!.split(';')[0]!.matchAll(/'(.+?)'/g)].map(([, code]) => code!)

/** Keeps the workers that the page makes until it ends them. A browser may list for ever one that was ended while it started. */
const watchWorkers = () => {
  const scope = globalThis as unknown as { workersMade: Set<object>, Worker: object }
  scope.workersMade = new Set()
  scope.Worker = new Proxy(Worker, {
    construct: (made, args) => {
      const worker = Reflect.construct(made, args) as object
      scope.workersMade.add(worker)
      return worker
    }
  })
  const { terminate } = Worker.prototype
  Worker.prototype.terminate = function () {
    scope.workersMade.delete(this)
    terminate.call(this)
  }
}
const workersMade = () => (globalThis as unknown as { workersMade: Set<object> }).workersMade.size
const gpuBytes = () => (globalThis as unknown as { gpuBytesMade: number }).gpuBytesMade

/**
 * The memory that is held when no model is loaded. A model that was disposed of is freed when its
 * worker gets to that, and a load that was aborted early ends its worker when that has started.
 */
const held = async (page: Page, worker: Thread) => {
  const patience = { timeout: BOUND }
  await expect.poll(() => page.evaluate(workersMade), patience).toBe(0)
  await expect.poll(async () => await page.evaluate(gpuBytes) + await worker.evaluate(gpuBytes), patience).toBe(0)
  const inspector = await page.context().newCDPSession(page)
  await inspector.send('HeapProfiler.collectGarbage')
  const { usedSize } = await inspector.send('Runtime.getHeapUsage')
  await inspector.detach()
  return {
    heap: usedSize,
    wasm: await page.evaluate(wasmBytes) + await worker.evaluate(wasmBytes),
    locks: await page.evaluate(async () => (await navigator.locks.query()).held!.length)
  }
}

test('random calls end with the right answer or a code, and memory is where it was', { tag: '@soak' }, async ({ page }) => {
  test.setTimeout(MINUTES * 60_000 * 2 + 5 * BOUND)
  console.log(`SOAK_SEED=${SEED} SOAK_MINUTES=${MINUTES}`)
  const thrown: string[] = []
  page.on('pageerror', error => thrown.push(String(error)))
  await page.goto('/tests/web/harness.html?shared')
  await page.waitForFunction(() => window.tritloom)
  const worker = page.workers()[0]!
  await page.evaluate(watchWorkers)
  await page.evaluate(watchBuffers)
  await worker.evaluate(watchBuffers)
  await page.evaluate(async setup => {
    const { RandomCalls } = await import('/tests/web/random-calls.mjs' as string)
    window.calls = new RandomCalls(setup)
  }, { seed: SEED, url: GOLDEN_MODEL, goldens, codes: CODES, bound: BOUND })

  const round = async (work: Promise<string | undefined>) => {
    const wrong = await work
    expect(wrong, `with the seed ${SEED}`).toBeUndefined()
    expect(thrown, 'uncaught errors in the page').toEqual([])
    const found = await held(page, worker)
    console.log(Object.entries(found).map(([what, count]) => `${what} ${count}`).join(', '))
    return found
  }
  await round(page.evaluate(() => window.calls.begin()))
  const rounds = Math.round(MINUTES * 60_000 / ROUND)
  const found = []
  for (let n = 0; n < rounds; n++) found.push(await round(page.evaluate(ms => window.calls.run(ms), ROUND)))
  console.log(JSON.stringify(await page.evaluate(() => window.calls.counts), undefined, 1))

  // The first rounds allocate what all others use.
  const before = found[Math.floor(rounds / 3)]!
  const after = found.at(-1)!
  expect(after.locks).toBe(before.locks)
  expect(after.heap).toBeLessThan(before.heap + MIB)
  // Loads take 4 MiB each. Objects that live on in between may keep the next load from using them
  // again.
  expect(after.wasm).toBeLessThan(before.wasm + 16 * MIB)
})
