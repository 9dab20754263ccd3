// Every kernel against its reference, in browsers: these compile WGSL in other ways than the native tests. The cases,
// their inputs and tolerances are those of tests/kernels.
import { expect, test } from '@playwright/test'
import { buildKernelCases } from '../../scripts/build/kernel-cases.mjs'
import { firefoxPath, test as inFirefox } from './firefox'
import type { InPage } from './harness'
import type { runCases } from './kernel-cases.mjs'

type Result = Awaited<ReturnType<typeof runCases>>

declare global {
  interface Window {
    runCases: typeof runCases
    /** The end of the last run, once it is there. */
    ended?: { result?: Result, error?: string }
  }
}

/** Cases of most families, those that take a CPU the fewest seconds to compile. */
const FEW = [
  'texts_in_rows_are_attended_as_alone', 'merges_take_the_mean',
  'best_of_each_takes_biases_penalties_and_masks_into_account',
  'embed_copies_the_rows_of_all_shards',
  'norm_gemv_takes_long_rows',
  'gate_rows_gates_each_token_of_the_step',
  'every_f16_survives_splitting',
  'a_chunk_has_the_record_of_its_last_position',
  'quantize_groups_rounds_each_group_by_its_own_scale', 'rms_norm_quantize_groups_norms_first',
  'the_probe_reads_everything_once',
  'rms_norm_norms_the_last_token', 'rms_norm_quantize_handles_every_token',
  'texts_in_rows_are_stored_in_their_ranges',
  'logits_of_nan_give_no_token',
  'take_logits_copies_the_row_of_the_step',
  'gemm_i2s_is_exact'
]

/** These need subgroups of eight lanes. SwiftShader's have four, and Firefox has none. */
const NEEDS_LANES = ['norm_attention_decode']

const PAGE = '/tests/web/kernel-cases.html'
/** Milliseconds for all cases, and for some. */
const LONG = 3 * 3_600_000
const SHORT = 600_000

const build = () => {
  // All dependencies are compiled the first time.
  test.setTimeout(2 * SHORT)
  buildKernelCases()
}

/** Runs these cases, or all of them. Fails with the reasons of all that fail. */
const expectCases = async (page: InPage, names?: string[]) => {
  await page.evaluate(names => {
    void window.runCases({ names })
      .then(result => { window.ended = { result } }, error => { window.ended = { error: String(error) } })
  }, names)
  // It asks now and then, because Firefox gives a request up that is not answered for five minutes.
  await expect.poll(() => page.evaluate(() => 'ended' in window), { timeout: names ? SHORT : LONG, intervals: [1000] }).toBe(true)
  const { result, error } = await page.evaluate(() => window.ended!)
  if (!result) throw new Error(error)
  const { cases, kernels } = result
  expect(cases.flatMap(({ file, name, failed }) => failed ? [`${file}: ${name}: ${failed}`] : [])).toEqual([])
  if (names) return expect(new Set(cases.map(({ name }) => name))).toEqual(new Set(names))
  const ran = new Set(cases.flatMap(({ kernels }) => kernels!.map(label => label.split('/')[0]!)))
  expect(kernels.filter(name => !ran.has(name))).toEqual(NEEDS_LANES)
}

for (const [tag, names] of [['@usual', FEW], ['@all', undefined]] as const) {
  const title = names ? 'some kernels compute what their references do' : 'every kernel computes what its reference does'

  test.describe('in Chromium', { tag }, () => {
    test.beforeAll(build)

    test(title, async ({ page }) => {
      test.setTimeout(2 * (names ? SHORT : LONG))
      await page.goto(PAGE)
      await expectCases(page, names && [...names])
    })
  })

  inFirefox.describe('in Firefox', { tag }, () => {
    inFirefox.skip(!firefoxPath, 'no Firefox, or none that is new enough')
    inFirefox.beforeAll(build)

    inFirefox(title, async ({ tabs: [tab] }) => {
      inFirefox.setTimeout(2 * (names ? SHORT : LONG))
      await tab.open(PAGE)
      await expect.poll(() => tab.evaluate(() => 'runCases' in window)).toBe(true)
      await expectCases(tab, names && [...names])
    })
  })
}

test('a kernel that computes something else is found, and the cases after it run', async ({ page }) => {
  build()
  await page.goto(PAGE)
  const { cases } = await page.evaluate(async () => {
    const script = `const { createShaderModule } = GPUDevice.prototype
      GPUDevice.prototype.createShaderModule = function ({ code }) {
        return createShaderModule.call(this, { code: code.replace('sum += data[at]', 'sum -= data[at]') })
      }
      await import('${location.origin}/tests/web/kernel-cases-worker.mjs')`
    const worker = URL.createObjectURL(new Blob([script], { type: 'text/javascript' }))
    const names = ['the_probe_reads_everything_once', 'take_logits_copies_the_row_of_the_step']
    return window.runCases({ names, worker })
  })
  expect(cases).toEqual([
    expect.objectContaining({ file: 'probe_read', failed: expect.stringMatching(/probe_read\.rs:\d+/) }),
    { file: 'take_logits', name: expect.any(String), ms: expect.any(Number), kernels: ['take_logits'], differences: {} }
  ])
})
