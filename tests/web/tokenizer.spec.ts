// The browser's part of the tokenizer: the option, and Unicode's normal form.
import { expect, load, loadFailure, test } from './harness'

test.use({ backend: 'cpu' })

test('an unknown pre-tokenizer is refused by name, unless the closest one is asked for', async ({ shared: page }) => {
  for (const options of [{}, { tokenizer: 'strict' as const }]) {
    expect(await loadFailure(page, '/unknown.gguf', options)).toEqual({
      code: 'unsupported-model', message: expect.stringMatching(/`unknown`.*`qwen2`/)
    })
  }
  const info = await load(page, { tokenizer: 'closest' }, '/unknown.gguf')
  expect(info.notes).toEqual([expect.stringMatching(/`unknown`.*`default`/)])
  expect((await load(page, { tokenizer: 'closest' }, '/qwen2.gguf')).notes).toEqual([])
})

test("Qwen's texts are brought into normal form C", async ({ shared: page }) => {
  await load(page, {}, '/qwen2.gguf')
  const texts = ['Cafe\u0301', '\u1112\u1161\u11ab', '\u212b q\u0307\u0323', 'plain \ud83d\ude42']
  const found = await page.evaluate(async texts => Promise.all(texts.map(async text => {
    return window.model.detokenize(await window.model.tokenize(text))
  })), texts)
  expect(found).toEqual(['Caf\u00e9', '\ud55c', '\u00c5 q\u0323\u0307', 'plain \ud83d\ude42'])
})
