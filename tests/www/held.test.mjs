// The model that a page holds, without a browser.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BitNet, BitNetError } from '../../pkg/index.js'
import { load } from './load.mjs'

globalThis.location = { search: '' }
const { HeldModel } = await load('shared/model/held.ts')

/** A model of a page whose GPU is lost by `lose`, and `losses`, which counts what the page was told. */
const pageWithModel = async () => {
  let lose
  const lost = () => new Promise(resolve => { lose = resolve })
  const model = { lost: lost() }
  BitNet.load = async () => model
  const page = { losses: 0, held: new HeldModel(() => { page.losses += 1 }) }
  await page.held.load('a.gguf', {})
  page.lose = async () => {
    const now = lose
    model.lost = lost()
    now()
    await new Promise(setImmediate)
  }
  return page
}

test('each loss is told once, and a call that goes well shows that the model is back', async () => {
  const page = await pageWithModel()
  for (const losses of [1, 2]) {
    await page.lose()
    await page.lose()
    assert.deepEqual([page.losses, page.held.isLost], [losses, true])
    assert.equal(await page.held.use(async () => 7), 7)
    assert.equal(page.held.isLost, false)
  }
})

test('a loss during a call is told by its error alone', async () => {
  const page = await pageWithModel()
  const failed = page.held.use(async () => {
    // Another call that ends meanwhile changes nothing.
    await page.held.use(async () => {})
    await page.lose()
    throw new BitNetError('device-lost', 'it is gone')
  })
  await assert.rejects(failed, { code: 'device-lost' })
  assert.deepEqual([page.losses, page.held.isLost], [0, true])
})
