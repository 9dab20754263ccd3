// An index in a browser: kept in IndexedDB, with a real embedding model. Its weights are random, so that it finds no
// meanings, but always the same ones. How an index works is in tests/pkg/search.test.mjs.
import type { Page } from '@playwright/test'
import type * as search from '../../pkg/search.js'
import { expect, failure, load, open, test } from './harness'

test.use({ backend: 'cpu' })

const QWEN = '/tests/data/embed/qwen3-embd-q2_0.gguf'
const BITNET = '/tests/data/embed/bitnet-embd-i2_s.gguf'

interface Searching {
  search: typeof search
  index: search.SearchIndex<number>
}

/** Opens the index of the page's model, as `index`; gives its ids. */
const openIndex = (page: Page) => page.evaluate(async entry => {
  const found = await import(entry) as typeof search
  const index = await found.createIndex<number>(window.model)
  Object.assign(window, { search: found, index } satisfies Searching)
  return index.ids()
}, '/pkg/search.js')

const find = (page: Page, query: string) => page.evaluate(async query => {
  const { index } = window as unknown as Searching
  return index.search(query, { k: 3 })
}, query)

/** Changes a record of the stored index, and closes the database. */
const damage = (page: Page, store: string, change: string) => page.evaluate(([store, change]) => new Promise<void>((resolve, reject) => {
  const opening = indexedDB.open('tritloom-search:index')
  opening.onsuccess = () => {
    const transaction = opening.result.transaction(store!, 'readwrite')
    const request = transaction.objectStore(store!).openCursor()
    request.onsuccess = () => (0, eval)(`(cursor => { const { value } = cursor; ${change} })`)(request.result)
    transaction.oncomplete = () => {
      opening.result.close()
      resolve()
    }
    transaction.onabort = () => reject(transaction.error)
  }
}), [store, change])

// Over ten seconds: four pages load models.
test('an index is kept for the next visit, for one model, and its damage is found', async ({ harness: page, browser }) => {
  await load(page, {}, QWEN)
  expect(await openIndex(page)).toEqual([])
  const expected = await page.evaluate(async () => {
    const { index } = window as unknown as Searching
    const texts = Array.from({ length: 300 }, (_, n) => ({ id: `t${n}`, text: `Text ${n} is about ${n % 7} lamps.`, metadata: n }))
    const progress: search.IndexProgress[] = []
    await index.addMany(texts, { onProgress: now => progress.push(now) })
    // The same by the model alone.
    const vectors = await window.model.embed(texts.map(({ text }) => text))
    const [asked] = await window.model.embed(['How many lamps?'], { task: 'query' })
    const score = (vector: Float32Array) => vector.reduce((sum, value, n) => sum + value * asked![n]!, 0)
    const best = texts.map(({ id, text, metadata }, n) => ({ id, text, metadata, passage: 0, score: score(vectors[n]!) }))
    return { best: best.sort((a, b) => b.score - a.score).slice(0, 3), last: progress.at(-1) }
  })
  expect(expected.last).toEqual({ done: 300, unchanged: 0, passages: 300 })
  const found = await find(page, 'How many lamps?')
  expect(found.map(({ score }) => score.toFixed(4))).toEqual(expected.best.map(({ score }) => score.toFixed(4)))
  expect({ ...found[0]!, score: 0 }).toEqual({ ...expected.best[0]!, score: 0 })

  // Another page of the same visitor has it, and each sees the changes of the other.
  const { page: other, close } = await open(browser, page.context(), 'cpu')
  await load(other, {}, QWEN)
  expect(await openIndex(other)).toHaveLength(300)
  expect(await find(other, 'How many lamps?')).toEqual(found)
  const remove = (id: string) => other.evaluate(id => (window as unknown as Searching).index.remove(id), id)
  await remove(found[0]!.id)
  expect((await find(page, 'How many lamps?'))[0]).toEqual(found[1])
  await page.evaluate(() => (window as unknown as Searching).index.add('new', 'A new text.', 7))
  expect(await other.evaluate(async () => {
    const { index } = window as unknown as Searching
    await index.search('new')
    return [index.size, index.has('new')]
  })).toEqual([300, true])
  await close()

  // The next visit.
  await page.reload()
  await page.waitForFunction(() => window.tritloom)
  await page.evaluate(() => { window.backend = 'cpu' })
  await load(page, {}, BITNET)
  const opening = `const { createIndex } = await import('/pkg/search.js'); await createIndex(model, { pooling: 'mean' })`
  expect(await failure(page, opening)).toMatchObject({ code: 'index-mismatch' })
  await load(page, {}, QWEN)
  expect(await failure(page, opening.replace('mean', 'cls'))).toMatchObject({ code: 'index-mismatch' })
  expect(await openIndex(page)).toHaveLength(300)
  expect((await find(page, 'How many lamps?'))[0]).toEqual(found[1])

  await page.evaluate(() => (window as unknown as Searching).index.close())
  const plain = opening.replace(", { pooling: 'mean' }", '')
  expect(await failure(page, plain)).toMatchObject({ code: 'none' })
  await damage(page, 'blocks', 'value.codes[7] ^= 1; cursor.update(value)')
  expect(await failure(page, plain)).toMatchObject({ code: 'index-damaged' })
  await damage(page, 'blocks', 'cursor.delete()')
  expect(await failure(page, plain)).toMatchObject({ code: 'index-damaged' })

  // Deleting it mends that, and takes it from those that have it.
  await page.evaluate(() => (window as unknown as Searching).search.deleteIndex())
  expect(await openIndex(page)).toEqual([])
  await page.evaluate(() => (window as unknown as Searching).search.deleteIndex())
  expect(await failure(page, `await index.add('a', 'A text.')`)).toMatchObject({ code: 'storage', message: /deleted/ })
})

// Some ten seconds: texts that are larger than the room are embedded.
test('a database that is no index, and no room in the browser', async ({ harness: page }) => {
  // Before anything is stored: the browser remembers for a while what was free.
  const session = await page.context().newCDPSession(page)
  const origin = new URL(page.url()).origin
  await session.send('Storage.overrideQuotaForOrigin', { origin, quotaSize: 100_000 })
  await load(page, { cache: 'off' }, QWEN)
  await openIndex(page)
  expect(await failure(page, `await index.add('a', 'A text of words. '.repeat(4000))`)).toMatchObject({ code: 'storage-full' })
  await session.send('Storage.overrideQuotaForOrigin', { origin })
  const add = () => failure(page, `await index.add('b', 'A text.')`)
  await expect.poll(add).toMatchObject({ code: 'none' })
  expect(await page.evaluate(async () => {
    const { index } = window as unknown as Searching
    return [index.ids(), (await index.search('text')).length]
  })).toEqual([['b'], 1])

  const opening = `const { createIndex } = await import('/pkg/search.js'); await createIndex(model, { name: 'other' })`
  for (const layout of [1, 2]) {
    await page.evaluate(layout => new Promise<void>(resolve => {
      const opening = indexedDB.open('tritloom-search:other', layout)
      opening.onsuccess = () => {
        opening.result.close()
        resolve()
      }
    }), layout)
    expect(await failure(page, opening)).toMatchObject({ code: 'index-damaged' })
  }
})
