// Adapters in a browser, on the GPU and on the CPU: logits of another program. tests/session/adapters.rs has the rest
// of what they do.
import { BASES, expectAdapted } from './adapters'
import { expect, failure, load, test } from './harness'

for (const backend of ['webgpu', 'cpu'] as const) {
  test.describe(`on the ${backend}`, () => {
    test.use({ backend })
    test('every set of adapters has its logits', async ({ shared: page }) => {
      for (const base of BASES) await expectAdapted(page, base)
    })
  })
}

test.describe('of a load', () => {
  test.use({ backend: 'cpu' })
  test('adapters are applied from its first call on, and one that does not fit makes it fail', async ({ shared: page }) => {
    const [url, source] = ['/tests/data/models/qwen3-q2_0.gguf', '/tests/data/lora/qwen3-r8.gguf']
    await load(page, { cache: 'off', adapters: [{ source, scale: 0.5 }] }, url)
    const same = await page.evaluate(async source => {
      const { model } = window
      const ids = Uint32Array.of(1, 2, 3)
      const before = [...await model.logits(ids)]
      const hashes = [model.adaptersHash]
      await model.setAdapters([])
      hashes.push(model.adaptersHash)
      const alone = [...await model.logits(ids)]
      await model.setAdapters([{ adapter: await model.loadAdapter(source), scale: 0.5 }])
      hashes.push(model.adaptersHash)
      return [
        String(alone) === String(before), String([...await model.logits(ids)]) === String(before),
        hashes[0] === hashes[2] && hashes[0]!.length === 16, hashes[1] === ''
      ]
    }, source)
    expect(same).toEqual([false, true, true, true])
    const of = (adapter: string) => `await load('${url}', { cache: 'off', adapters: [{ source: '${adapter}' }] })`
    expect(await failure(page, of('/tests/data/lora/bitnet-r4.gguf'))).toMatchObject({ code: 'bad-adapter' })
    expect(await failure(page, of('/tests/data/lora/missing.gguf'))).toMatchObject({ code: 'http' })
  })
})
