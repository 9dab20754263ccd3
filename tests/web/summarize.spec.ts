// Summaries in a browser, in a worker and in this thread. How texts are split and what the model is
// asked is in tests/pkg/summarize.test.mjs; tldr.spec.ts has summaries of texts that fit.
import type { Page } from '@playwright/test'
import type * as tritloom from '../../pkg/index.js'
import { expect, failure, GOLDEN_MODEL, load, test } from './harness'

test.use({ backend: 'cpu' })

const DAY = 'Mia wanted to go to the beach, but it was raining. Her brother Ben built a big fort with pillows. '

/** A text's summary, its statistics, and what was reported meanwhile. */
const summarize = (page: Page, text: string, options: tritloom.SummarizeOptions = {}) =>
  page.evaluate(async ([text, options]) => {
    const reports: tritloom.SummaryProgress[] = []
    const onProgress = (progress: tritloom.SummaryProgress) => { reports.push(progress) }
    const answer = window.model.summarize(text, { ...options, onProgress })
    return { text: await answer.text(), stats: await answer.stats, reports }
  }, [text, options] as const)

/** The reports for `passages` passages, and then for their summaries. */
const rounds = (passages: number) =>
  [...Array.from({ length: passages + 1 }, (_, done) => `${done}/${passages}`), '0/1', '1/1']

const said = ({ reports }: { reports: tritloom.SummaryProgress[] }) => reports.map(({ done, passages }) => `${done}/${passages}`)

for (const worker of [true, false]) {
  test(`several passages, an abort, and what is refused, ${worker ? 'in a worker' : 'in this thread'}`, async ({ shared: page }) => {
    await load(page, { context: 192, ...(worker ? {} : { worker }) }, GOLDEN_MODEL)
    const long = await summarize(page, DAY.repeat(4), { maxTokens: 8 })
    expect(said(long)).toEqual(rounds(long.reports[0]!.passages))
    expect(long.reports[0]!.passages).toBeGreaterThan(2)
    expect(long.stats.promptTokens).toBeGreaterThan(192)
    // The prompts begin with the same words, and those were computed once.
    expect(long.stats.reusedTokens).toBeGreaterThan(5 * long.reports[0]!.passages)

    const aborted = await page.evaluate(async text => {
      const stop = new AbortController()
      const onProgress = ({ done }: tritloom.SummaryProgress) => { if (done === 1) stop.abort(new Error('enough')) }
      const answer = window.model.summarize(text, { onProgress, signal: stop.signal })
      const why = await answer.text().catch((error: Error) => error.message)
      return { why, reason: (await answer.stats).finishReason, next: await window.model.generate('Who are you?', { maxTokens: 3 }).text() }
    }, DAY.repeat(4))
    expect(aborted).toEqual({ why: 'enough', reason: 'abort', next: 'I am a' })

    const wrong = (options: string) => failure(page, `await model.summarize('A day.', ${options}).text()`)
    expect(await wrong('null')).toEqual({ code: 'bad-option', message: 'bad option `options`: must be an object' })
    expect(await wrong(`{ type: 'poem' }`)).toMatchObject({ code: 'bad-option' })
    expect(await wrong('{ lenght: 5 }')).toEqual({ code: 'bad-option', message: 'bad option `lenght`: there is no such option' })
    expect(await wrong('{ temperature: -1 }')).toMatchObject({ code: 'bad-option' })
    await page.evaluate(() => window.model.dispose())
    expect(await wrong('{}')).toMatchObject({ code: 'disposed' })
  })
}

// Over ten seconds: the bundled model is loaded, and gives three answers.
test('the bundled model reads a text in passages, and says one sentence', async ({ shared: page }) => {
  await load(page, { context: 160 })
  const long = await summarize(page, DAY.repeat(6))
  expect(said(long)).toEqual(rounds(2))
  expect(long.text).toMatch(/^[A-Z][^.!?]+[.!?]$/)
  expect(long.stats.finishReason).toBe('stop')
})
