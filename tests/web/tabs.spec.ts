// Several tabs of one site: they download a model once.
import type { Page } from '@playwright/test'
import {
  expect, expectNeverBack, expectRandomModel, heldHalfway, loadReporting, MIB, open, scripted, sent,
  SIZE, storedModels, test, untilWaiting
} from './harness'

test.use({ backend: 'cpu' })

/**
 * As `heldHalfway`, and the second half takes a second, in which the other tab sees the progress.
 */
const { then, always } = heldHalfway()
const SLOW_HALF = { then, always: { ...always, pace: 32 << 10, ms: 20 } }

/** The bytes that `heldHalfway` sends before the release. */
const HELD = 5 * MIB

const untilStored = (page: Page, bytes: number) =>
  expect.poll(async () => (await storedModels(page))[0]?.bytes ?? 0, { intervals: [50] }).toBeGreaterThan(bytes)

test('two tabs download once: the second follows the first, then loads its copy', async ({ shared, browser }) => {
  const other = await open(browser, shared.context(), 'cpu')
  const { path, url, release, requests } = await scripted(shared, SLOW_HALF)
  const first = loadReporting(shared, path)
  await untilStored(shared, 0)
  const following = loadReporting(other.page, path)
  await untilWaiting(other.page)
  await release()
  const second = await following
  expect((await first).kinds).toEqual([])
  expect(second.kinds).toEqual(['waiting'])
  // It saw the first one's bytes come, and its own progress never went back.
  const followed = second.reports.filter(({ phase, total, loaded }) => phase === 'download' && total === SIZE && loaded > 0)
  expect(followed.length).toBeGreaterThan(3)
  expect(second.reports.some(({ phase, fromCache }) => phase === 'cache' && fromCache)).toBe(true)
  expectNeverBack(second.reports)
  expect(sent(await requests())).toBe(SIZE)
  await expectRandomModel(shared)
  await expectRandomModel(other.page)
  expect((await storedModels(shared)).map(({ url, complete }) => [url, complete])).toEqual([[url, true]])
  await other.close()
})

test('when the tab that downloads dies, the one that waits goes on', async ({ shared, browser }) => {
  const dying = await open(browser, shared.context(), 'cpu')
  const { path, release, requests } = await scripted(shared, heldHalfway())
  void dying.page.evaluate(path => { void window.load(path) }, path)
  await untilStored(shared, 2 * MIB)
  const loading = loadReporting(shared, path)
  await untilWaiting(shared)
  await dying.page.close()
  await release()
  const { kinds, notes } = await loading
  expect(kinds).toEqual(['waiting', 'resumed'])
  const resumed = notes.find(note => note.kind === 'resumed')!
  expect(resumed.bytes).toBeGreaterThan(2 * MIB)
  // Only what was in flight when the tab died comes twice.
  expect(sent(await requests())).toBeLessThan(SIZE + 5 * MIB)
  await expectRandomModel(shared)
})

test('three loads in one page: one that downloads and one that waits are aborted, the third gets the model', async ({ harness }) => {
  const { path, release, requests } = await scripted(harness, heldHalfway())
  await harness.exposeFunction('release', release)
  const found = await harness.evaluate(async ([path, held]) => {
    const { BitNet } = window.tritloom
    const load = (signal?: AbortSignal) => {
      let begin = () => {}
      const begun = new Promise<void>(resolve => { begin = resolve })
      const onProgress = ({ loaded, notes }: import('../../pkg/index.js').Progress) => {
        if (loaded > 0 || notes.some(({ kind }) => kind === 'waiting')) begin()
      }
      return { begun, loaded: BitNet.load(path, { ...(signal ? { signal } : {}), worker: false, onProgress }) }
    }
    const message = (work: Promise<unknown>) => work.then(() => 'none', error => error.message)
    const [downloading, waiting] = [new AbortController(), new AbortController()]
    const one = load(downloading.signal)
    const stored = async () => (await BitNet.cache.list())[0]?.bytes ?? 0
    while (await stored() < held) await new Promise(resolve => setTimeout(resolve, 20))
    const [two, three] = [load(waiting.signal), load()]
    await Promise.all([two.begun, three.begun])
    const messages = Promise.all([message(one.loaded), message(two.loaded)])
    waiting.abort(new Error('no more waiting'))
    downloading.abort(new Error('no more downloading'))
    const found = await messages
    await (window as unknown as { release(): Promise<void> }).release()
    window.model = await three.loaded
    await window.model.stored
    return found
  }, [path, HELD] as const)
  expect(found).toEqual(['no more downloading', 'no more waiting'])
  await expectRandomModel(harness)
  expect((await storedModels(harness)).map(({ complete }) => complete)).toEqual([true])
  // The bytes that the first had stored are not fetched again. The server may still send the bytes
  // that it was asked for.
  expect(sent(await requests())).toBeLessThan(SIZE + 5 * MIB)
})

test('a load that stores nothing tells other tabs nothing', async ({ shared }) => {
  const { path, url } = await scripted(shared)
  const addresses = (cache: 'use' | 'off') => shared.evaluate(async ([path, cache]) => {
    const urls = new Set<string>()
    const channel = new BroadcastChannel('tritloom-load')
    channel.onmessage = ({ data }) => urls.add(data[0])
    await window.load(path, { cache })
    channel.close()
    return [...urls]
  }, [path, cache] as const)
  expect(await addresses('off')).toEqual([])
  expect(await addresses('use')).toEqual([url])
})

test('a page without locks loads and stores', async ({ shared }) => {
  await shared.evaluate(() => { Object.defineProperty(navigator, 'locks', { configurable: true, value: undefined }) })
  const { path } = await scripted(shared)
  const { kinds } = await loadReporting(shared, path, { worker: false })
  expect(kinds).toEqual([])
  await expectRandomModel(shared)
  expect((await storedModels(shared)).map(({ complete }) => complete)).toEqual([true])
})
