// Adapters by the package, from bytes and from files, on the CPU.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { adapterFile } from './adapter-file.mjs'
import { CACHE, failsWith, GOLDEN, using } from './support.mjs'

const IDS = Uint32Array.of(1, 2, 3, 4, 5)

test('adapters change the model, and without them it is as it was', async () => {
  const path = join(CACHE, 'adapter.gguf')
  writeFileSync(path, adapterFile())
  await using(GOLDEN, { backend: 'cpu' }, async model => {
    const alone = await model.logits(IDS)
    const adapter = await model.loadAdapter(adapterFile())
    const { name, ranks, targets } = adapter
    assert.deepEqual({ name, ranks, targets }, { name: 'changed', ranks: [4, 4], targets: ['attn_v'] })
    assert.deepEqual(await model.logits(IDS), alone)
    await model.setAdapters([{ adapter, scale: 0.5 }])
    const changed = await model.logits(IDS)
    assert.notDeepEqual(changed, alone)
    await model.setAdapters([{ adapter: await model.loadAdapter(path), scale: 0.5 }])
    assert.deepEqual(await model.logits(IDS), changed)
    await model.setAdapters([])
    assert.deepEqual(await model.logits(IDS), alone)
    await adapter.dispose()
    await assert.rejects(model.setAdapters([{ adapter }]), failsWith('bad-option', /disposed/))
    await using(GOLDEN, { backend: 'cpu', adapters: [{ source: path, scale: 0.5 }] }, async other => {
      assert.deepEqual(await other.logits(IDS), changed)
    })
  })
})

test('a file that is no adapter is refused, and so is the load that names it', async () => {
  const refused = failsWith('bad-adapter', /general\.type/)
  await using(GOLDEN, { backend: 'cpu' }, model => assert.rejects(model.loadAdapter(GOLDEN), refused))
  await assert.rejects(using(GOLDEN, { backend: 'cpu', adapters: [{ source: GOLDEN }] }, () => {}), refused)
})
