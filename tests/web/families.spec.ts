// A small model of every family in the browser: its logits against those of a float64 program.
import { expect, test } from './harness'
import { cases, expectLogits, rowsOf } from './logits'

/** Files of which all rows are compared: one of each architecture. */
const WHOLE = ['qwen3-q2_0', 'minicpm-tq2_0', 'llama-i2_s', 'bitnet-tq2_0', 'bitnet-b1.58-embd-q6_k']

for (const one of cases) {
  const whole = WHOLE.includes(one.file)
  test(`${one.file} has its logits from position ${one.first + rowsOf(one, whole).from}`, ({ shared }) => expectLogits(shared, one, whole))
}

test.describe('on the CPU', () => {
  test.use({ backend: 'cpu' })
  for (const name of ['relaxed', 'simd']) {
    test(`every file has its logits, by the module ${name}`, async ({ harness }) => {
      if (name === 'simd') await harness.route(/tritloom-relaxed\.wasm/, route => route.fulfill({ body: Buffer.from('\0asm\x01\0\0\0c\x01\0', 'latin1'), contentType: 'application/wasm' }))
      await harness.evaluate(() => { window.worker = new Worker('/pkg/protocol/worker.js', { type: 'module' }) })
      for (const one of cases) await expectLogits(harness, one, true)
      const { kernels } = await harness.evaluate(() => window.model.info)
      expect(kernels.every(kernel => kernel.endsWith(name === 'simd' ? '/simd128' : '/relaxed-simd'))).toBe(true)
    })
  }
})
