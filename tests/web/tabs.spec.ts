// Several tabs of one site: they download a model once.
import { statSync } from 'node:fs'
import type { Page } from '@playwright/test'
import { expect, expectGolden, halfway, loadAndTell, MODEL, open, play, stored, test, untilWaiting } from './harness'

const SIZE = statSync(`.${MODEL}`).size
const MIB = 1 << 20
/** As `halfway`, and the second half takes a second: time for the one tab to see how the other gets on. */
const { then, always } = halfway()
const HALFWAY = { then, always: { ...always, pace: 32 << 10, ms: 20 } }

const untilStored = (page: Page, bytes: number) =>
  expect.poll(async () => (await stored(page))[0]?.bytes ?? 0, { intervals: [50] }).toBeGreaterThan(bytes)

test('two tabs download once: the second follows the first, then loads its copy', async ({ harness, browser }) => {
  const other = await open(browser, harness.context())
  const { path, url, go, asked } = await play(harness, HALFWAY)
  const first = loadAndTell(harness, path)
  await untilStored(harness, 0)
  const following = loadAndTell(other.page, path)
  await untilWaiting(other.page)
  await go()
  const second = await following
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

test('a tab that dies is taken over from where it was', async ({ harness, browser }) => {
  const dying = await open(browser, harness.context())
  const { path, go, asked } = await play(harness, halfway())
  void dying.page.evaluate(path => { void window.ternlight.BitNet.load(path) }, path)
  await untilStored(harness, 2 * MIB)
  const loading = loadAndTell(harness, path)
  await untilWaiting(harness)
  await dying.page.close()
  await go()
  const { kinds, notes } = await loading
  expect(kinds).toEqual(['waiting', 'resumed'])
  const resumed = notes.find(note => note.kind === 'resumed')!
  expect(resumed.bytes).toBeGreaterThan(2 * MIB)
  // Only what was on its way when the tab died comes twice.
  expect((await asked()).reduce((sum, { sent }) => sum + sent, 0)).toBeLessThan(SIZE + 5 * MIB)
  await expectGolden(harness)
})

test('three loads in one page, one of them aborted, and an aborted wait', async ({ harness }) => {
  const { path, go, asked } = await play(harness, halfway())
  await harness.exposeFunction('go', go)
  const found = await harness.evaluate(async path => {
    const { BitNet } = window.ternlight
    const load = (signal?: AbortSignal) => {
      let tell = () => {}
      const told = new Promise<void>(resolve => { tell = resolve })
      const onProgress = ({ loaded, notes }: import('../../pkg/index.js').Progress) => {
        if (loaded > 0 || notes.some(({ kind }) => kind === 'waiting')) tell()
      }
      return { told, loaded: BitNet.load(path, { signal, worker: false, onProgress }) }
    }
    const message = (work: Promise<unknown>) => work.then(() => 'none', error => error.message)
    const [downloading, waiting] = [new AbortController(), new AbortController()]
    const one = load(downloading.signal)
    await one.told
    const [two, three] = [load(waiting.signal), load()]
    await Promise.all([two.told, three.told])
    const messages = Promise.all([message(one.loaded), message(two.loaded)])
    waiting.abort(new Error('no more waiting'))
    downloading.abort(new Error('no more downloading'))
    const found = await messages
    await (window as unknown as { go(): Promise<void> }).go()
    window.model = await three.loaded
    return found
  }, path)
  expect(found).toEqual(['no more downloading', 'no more waiting'])
  await expectGolden(harness)
  expect((await stored(harness)).map(({ complete }) => complete)).toEqual([true])
  // What the first had stored is not fetched again: only parts that were on their way.
  expect((await asked()).reduce((sum, { sent }) => sum + sent, 0)).toBeLessThan(SIZE + 5 * MIB)
})

test('a load that stores nothing tells nobody of its progress', async ({ harness }) => {
  const { path, url } = await play(harness, {})
  const told = (cache: 'use' | 'off') => harness.evaluate(async ([path, cache]) => {
    const urls = new Set<string>()
    const channel = new BroadcastChannel('ternlight-load')
    channel.onmessage = ({ data }) => urls.add(data[0])
    const model = await window.ternlight.BitNet.load(path, { cache })
    await model.dispose()
    channel.close()
    return [...urls]
  }, [path, cache] as const)
  expect(await told('off')).toEqual([])
  expect(await told('use')).toEqual([url])
})

test('a page without locks loads and stores', async ({ harness }) => {
  await harness.evaluate(() => { Object.defineProperty(navigator, 'locks', { value: undefined }) })
  const { path } = await play(harness, {})
  const { kinds } = await loadAndTell(harness, path, { worker: false })
  expect(kinds).toEqual([])
  await expectGolden(harness)
  expect((await stored(harness)).map(({ complete }) => complete)).toEqual([true])
})
