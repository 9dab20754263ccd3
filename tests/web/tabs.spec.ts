// Several tabs of one site: they download a model once.
import { statSync } from 'node:fs'
import type { Page } from '@playwright/test'
import { expect, expectGolden, loadAndTell, MODEL, open, play, stored, test } from './harness'

const SIZE = statSync(`.${MODEL}`).size
const MIB = 1 << 20
/** The whole takes some three seconds: time to break off in the middle, on any machine. */
const SLOWLY = { pace: 32 << 10, ms: 40 }

const untilStored = (page: Page, bytes: number) =>
  expect.poll(async () => (await stored(page))[0]?.bytes ?? 0, { intervals: [50] }).toBeGreaterThan(bytes)

test('two tabs download once: the second follows the first, then loads its copy', async ({ harness, browser }) => {
  const other = await open(browser, harness.context())
  const { path, url, asked } = await play(harness, { always: SLOWLY })
  const first = loadAndTell(harness, path)
  await untilStored(harness, 0)
  const second = await loadAndTell(other.page, path)
  expect((await first).kinds).toEqual([])
  expect(second.kinds).toEqual(['waiting'])
  // It saw the first one's bytes come, and its own progress never went back.
  const followed = second.reports.filter(({ phase, total, loaded }) => phase === 'download' && total === SIZE && loaded > 0)
  expect(followed.length).toBeGreaterThan(3)
  expect(second.reports.some(({ phase, fromCache }) => phase === 'cache' && fromCache)).toBe(true)
  const fractions = second.reports.map(({ fraction }) => fraction)
  expect(fractions).toEqual([...fractions].sort((a, b) => a - b))
  expect((await asked()).reduce((sum, { sent }) => sum + sent, 0)).toBe(SIZE)
  await expectGolden(harness)
  await expectGolden(other.page)
  expect((await stored(harness)).map(({ url, complete }) => [url, complete])).toEqual([[url, true]])
  await other.close()
})

// What one tab does while another is at a certain point is a matter of time, and a busy machine has little.
test.describe.configure({ retries: 2 })

test('a tab that dies is taken over from where it was', async ({ harness, browser }) => {
  const dying = await open(browser, harness.context())
  const { path, asked } = await play(harness, { always: SLOWLY })
  void dying.page.evaluate(path => { void window.ternlight.BitNet.load(path) }, path)
  await untilStored(harness, 2 * MIB)
  const loading = loadAndTell(harness, path)
  await harness.waitForTimeout(2500)
  await dying.page.close()
  const { kinds, notes } = await loading
  expect(kinds).toEqual(['waiting', 'resumed'])
  const resumed = notes.find(note => note.kind === 'resumed')!
  expect(resumed.bytes).toBeGreaterThan(2 * MIB)
  // Only what was on its way when the tab died comes twice.
  expect((await asked()).reduce((sum, { sent }) => sum + sent, 0)).toBeLessThan(SIZE + 5 * MIB)
  await expectGolden(harness)
})

test('two loads in one page, one of them aborted, and an aborted wait', async ({ harness }) => {
  const { path, asked } = await play(harness, { always: SLOWLY })
  const found = await harness.evaluate(async path => {
    const { BitNet } = window.ternlight
    const [first, waiting] = [new AbortController(), new AbortController()]
    const one = BitNet.load(path, { signal: first.signal, worker: false }).catch(error => error.message)
    const two = BitNet.load(path, { signal: waiting.signal, worker: false }).catch(error => error.message)
    const three = BitNet.load(path, { worker: false })
    await new Promise(resolve => setTimeout(resolve, 700))
    waiting.abort(new Error('no more waiting'))
    first.abort(new Error('no more downloading'))
    window.model = await three
    return [await one, await two]
  }, path)
  expect(found).toEqual(['no more downloading', 'no more waiting'])
  await expectGolden(harness)
  expect((await stored(harness)).map(({ complete }) => complete)).toEqual([true])
  // What the first had stored is not fetched again: only parts that were on their way.
  expect((await asked()).reduce((sum, { sent }) => sum + sent, 0)).toBeLessThan(SIZE + 5 * MIB)
})

test('a page without locks loads and stores', async ({ harness }) => {
  await harness.evaluate(() => { Object.defineProperty(navigator, 'locks', { value: undefined }) })
  const { path } = await play(harness, {})
  const { kinds } = await loadAndTell(harness, path, { worker: false })
  expect(kinds).toEqual([])
  await expectGolden(harness)
  expect((await stored(harness)).map(({ complete }) => complete)).toEqual([true])
})
