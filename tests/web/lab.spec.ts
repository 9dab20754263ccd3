// The lab, driven as a person would. Its numbers are compared with those of the bundled file, which other programs counted,
// with reports, and with what the page itself saves.
import { readFileSync } from 'node:fs'
import type { Page } from '@playwright/test'
import { figure } from '../../www/lab/table.ts'
import { expect, expectAccessible, SLOW, test as base, watchErrors } from './demos.ts'

/** A page that has loaded the bundled model on the CPU. The tests share it. */
const test = base.extend<{ lab: Page }, { visit: { page: Page, check: () => void } }>({
  visit: [
    async ({ browser }, use, { project }) => {
      const page = await browser.newPage({ baseURL: project.use.baseURL })
      const check = watchErrors(page)
      await page.goto('/lab/?backend=cpu')
      await expect(page.locator('#model-name')).toHaveText(/tiny-stories/, SLOW)
      await use({ page, check })
      await page.close()
    },
    { scope: 'worker' }
  ],
  lab: async ({ visit: { page, check } }, use) => {
    await use(page)
    check()
  }
})

const tab = (page: Page, name: string) => page.getByRole('tab', { name })
const fixture = (name: string) => JSON.parse(readFileSync(`tests/data/lab/${name}.json`, 'utf8'))

/** The texts of a table's body, row by row. */
const rowsOf = (page: Page, id: string) => page.locator(`#${id}`).evaluate((table: HTMLTableElement) =>
  [...table.tBodies[0]!.rows].map(row => [...row.cells].map(cell => cell.textContent)))

/** How often each colour comes in a canvas, by its name. */
const coloursOf = (page: Page, id: string) => page.locator(`#${id}`).evaluate((canvas: HTMLCanvasElement) => {
  const { data } = canvas.getContext('2d')!.getImageData(0, 0, canvas.width, canvas.height)
  const found: Record<string, number> = {}
  for (let n = 0; n < data.length; n += 4) {
    const name = [...data.slice(n, n + 3)].join(' ')
    found[name] = (found[name] ?? 0) + 1
  }
  return found
})

const WHITE = '247 247 247'
const BLUE = '33 102 172'
const ORANGE = '214 96 4'

/** The content of the report that a button saves. */
async function saved(page: Page, button: string) {
  const [download] = await Promise.all([page.waitForEvent('download'), page.locator(button).click()])
  return JSON.parse(readFileSync(await download.path(), 'utf8')).content
}

test('a keyboard reaches every tab, and the address names it', async ({ lab }) => {
  await tab(lab, 'Weights').click()
  /** Whether the keys were kept from scrolling the page too. */
  const kept = await lab.evaluateHandle(() => {
    const kept: boolean[] = []
    addEventListener('keydown', ({ defaultPrevented }) => kept.push(defaultPrevented))
    return kept
  })
  await lab.keyboard.press('ArrowRight')
  await expect(tab(lab, 'Inspect')).toBeFocused()
  await expect(lab.locator('#inspect')).toBeVisible()
  await expect(lab.locator('#weights')).toBeHidden()
  await lab.keyboard.press('End')
  await expect(lab).toHaveURL(/#speed$/)
  await lab.keyboard.press('ArrowRight')
  await expect(lab).toHaveURL(/#weights$/)
  await lab.keyboard.press('ArrowDown')
  expect(await kept.jsonValue()).toEqual([true, true, true, false])
  await expect(tab(lab, 'Weights')).toHaveAttribute('aria-selected', 'true')
})

test('an inspection of a report is drawn with its numbers', async ({ lab }) => {
  const { content } = fixture('inspect')
  await tab(lab, 'Inspect').click()
  await lab.locator('#inspect-report').setInputFiles('tests/data/lab/inspect.json')
  // One bit, none and ten.
  await expect(lab.locator('#inspect-facts')).toHaveText('4 tokens · 3.667 bits of surprise a token')
  const tokens = lab.locator('#token-list button')
  await expect(tokens).toHaveText(['<s>', 'Once', '·upon', '↵\n'])
  expect(await tokens.evaluateAll(all => all.map(one => (one as HTMLElement).style.getPropertyValue('--surprise'))))
    .toEqual(['', '0.100', '0.000', '1.000'])

  await tokens.nth(1).hover()
  const token = lab.locator('#token')
  await expect(token).toContainText('Token 1: "Once" · id 7 · probability 50.0 %, bits of surprise: 1')
  await expect(token.locator('table').first().locator('tbody tr')).toHaveText(['·upon9100.0 %'])
  await tokens.nth(1).focus()
  await lab.keyboard.press('ArrowRight')
  await lab.keyboard.press('ArrowRight')
  await expect(tokens.nth(3)).toBeFocused()
  await expect(tokens.nth(3)).toHaveAttribute('aria-pressed', 'true')
  await expect(token.locator('table').first().locator('tbody tr')).toHaveText(['Once775.0 %'])
  await expect(token.locator('table').nth(1).locator('tbody tr')).toHaveText(['↵\n350.0 %', '·upon225.0 %', '<s>012.5 %', 'Once112.5 %'])

  await expect(lab.locator('#attention-text')).toContainText('Layer 1, head 3.')
  expect(await lab.locator('#attention-canvas').evaluate((canvas: HTMLCanvasElement) => [canvas.width, canvas.height])).toEqual([4, 4])
  // One weight of 1, six of 0 after the tokens and one before, and those between.
  const colours = await coloursOf(lab, 'attention-canvas')
  expect([colours[ORANGE], colours[WHITE]]).toEqual([1, 7])

  expect(await rowsOf(lab, 'activations-table')).toEqual(content.activations.map(
    ({ layer, at, min, max, rms, notFinite }: Record<string, number>) =>
      [String(layer), at, figure(min!), figure(max!), figure(rms!), String(notFinite)]
  ))
  await expect(lab.locator('#activations-chart canvas')).toBeVisible()
  await expectAccessible(lab)

  // A chart in place of another leaves nothing behind that listens.
  const listening = await lab.evaluateHandle(() => {
    const listening = { count: 0 }
    const { addEventListener, removeEventListener } = MediaQueryList.prototype
    MediaQueryList.prototype.addEventListener = function (...args: [string, EventListener]) {
      listening.count += 1
      addEventListener.apply(this, args)
    }
    MediaQueryList.prototype.removeEventListener = function (...args: [string, EventListener]) {
      listening.count -= 1
      removeEventListener.apply(this, args)
    }
    return listening
  })
  const open = async () => {
    await lab.locator('#token-list').evaluate(list => list.replaceChildren())
    await lab.locator('#inspect-report').setInputFiles('tests/data/lab/inspect.json')
    await expect(tokens).toHaveCount(4)
    return (await listening.jsonValue()).count
  }
  const before = await open()
  expect(await open()).toBe(before)
})

test('two reports on speed are beside each other', async ({ lab }) => {
  await tab(lab, 'Speed').click()
  const damaged = { ...fixture('speed'), content: { ...fixture('speed').content, memory: {} } }
  await lab.locator('#speed-report').setInputFiles({ name: 'a.json', mimeType: 'application/json', buffer: Buffer.from(JSON.stringify(damaged)) })
  await expect(lab.getByRole('alert')).toContainText('This report is damaged: content.memory.file is no whole number.')
  await expect(lab.locator('#speed-remove')).toBeHidden()
  await lab.locator('#speed-report').setInputFiles('tests/data/lab/speed.json')
  await expect(lab.locator('#speed-facts')).toContainText('Report: a model, a card')
  const report = { 16: ['200', '1,000'], 64: ['180.3', '990.5'], 1024: ['', '900'] }
  const decode = async () => (await rowsOf(lab, 'decode-table')).map(([context, ...cells]) => [context, cells.slice(-2)])
  expect(await decode()).toEqual(Object.entries(report))
  expect((await rowsOf(lab, 'first-table')).map(([context, time]) => [context, time])).toEqual([['16', '50'], ['64', '120'], ['1024', '1,500']])
  expect(await rowsOf(lab, 'memory-table')).toEqual([
    ['The file', '1 MB'], ['Held in all, after the load', '3 MB'], ['Of that, keys and values', '1.9 MB'], ['Of that, weights, and what steps need', '1.1 MB'],
    ['Keys and values of a text that fills the context', '2 MB'], ['Read for a token, with an empty context', '900 kB']
  ])
  expect(await rowsOf(lab, 'kernels-table')).toEqual([
    ['norm_gemv/fused', '', '120.5', '30', '1.9 %'], ['sample_best', '', '4.5', '1', '0.1 %']
  ])
  await expect(lab.locator('#kernels-text')).toHaveText('Report: 125 µs of kernels, memory read at 400.5 GB/s at best.')
  const bars = await lab.locator('#kernels-table meter').evaluateAll(all => all.map(one => (one as HTMLMeterElement).value / (one as HTMLMeterElement).max))
  expect(bars).toEqual([1, 4.5 / 120.5])

  await lab.locator('#speed-start').click()
  await expect(lab.locator('#speed-save')).toBeEnabled(SLOW)
  await expect(lab.locator('#speed-start')).toBeVisible(SLOW)
  const mine = await saved(lab, '#speed-save')
  expect(mine.points.map(({ context }: { context: number }) => context).slice(0, 2)).toEqual([16, 64])
  const kernels = new Map((await rowsOf(lab, 'kernels-table')).map(([name, , time, calls]) => [name, [time, calls]]))
  // The CPU has two parts: its layers and the LM head.
  expect(mine.profile.kernels.length).toBeGreaterThan(1)
  for (const { kernel, microseconds, calls } of mine.profile.kernels) {
    expect(kernels.get(kernel), kernel).toEqual([figure(microseconds), String(calls)])
  }
  const shown = new Map((await rowsOf(lab, 'decode-table')).map(([context, rate]) => [context, rate]))
  for (const { context, decode } of mine.points) {
    expect(shown.get(String(context))).toBe(decode === null ? '' : figure(decode))
  }
  await expectAccessible(lab)
  await lab.getByRole('button', { name: 'Remove the report beside it' }).click()
  await expect(lab.locator('#speed-facts')).toHaveText(/^Here: tiny-stories-bitnet, the CPU/)
})

test('files that are no reports, or another tab’s, are refused with a sentence', async ({ lab }) => {
  await tab(lab, 'Inspect').click()
  const notice = lab.getByRole('alert')
  for (const [content, why] of [
    ['no JSON', 'This file is no report: it is no JSON.'],
    ['{}', 'This file is no report of this page.'],
    [readFileSync('tests/data/lab/speed.json', 'utf8'), 'This is a report on “speed”. Open it there.'],
    ['{"tritloom":"inspect","version":2}', 'This report is of a newer version of this page.'],
    ['{"tritloom":"inspect","version":1,"content":{}}', 'This report is damaged: content.tokens is no list.']
  ] as const) {
    await lab.locator('#inspect-report').setInputFiles({ name: 'a.json', mimeType: 'application/json', buffer: Buffer.from(content) })
    await expect(notice).toContainText(why)
  }
  await lab.locator('#inspect-report').setInputFiles('tests/data/lab/inspect.json')
  await expect(notice).toHaveCount(0)
})

test('an opening that hangs is stopped, and the file that was open stays', async ({ lab }) => {
  await lab.goto('/lab/#weights')
  await lab.getByRole('button', { name: 'Open the bundled model' }).click()
  const facts = lab.locator('#weights-facts')
  await expect(facts).toContainText('90 tensors', SLOW)
  await lab.route('**/never.gguf', () => {})
  await lab.locator('#weights-address').fill(new URL('/never.gguf', lab.url()).href)
  await lab.locator('#open-file').getByRole('button', { name: 'Open', exact: true }).click()
  await expect(facts).toHaveText('Opening …')
  await lab.locator('#weights-stop').click()
  await expect(facts).toContainText('90 tensors')
  await expect(lab.locator('#weights-stop')).toBeHidden()
})

test('the weights of a file have its counts, over the layers and as a picture', async ({ lab }) => {
  await tab(lab, 'Weights').click()
  await lab.getByLabel('A file on this device').setInputFiles('models/tiny-stories.gguf')
  await expect(lab.locator('#weights-facts')).toContainText('bitnet-b1.58 · ', SLOW)
  await expect(lab.locator('#weights-facts')).toContainText('90 tensors')
  await lab.getByRole('button', { name: 'Read all tensors' }).click()
  // As `tritloom inspect` counts them, and as the goldens of the file do: 87280, 87747 and 87117 of 262144.
  await expect(lab.locator('#weights-facts')).toContainText('all ternary weights read: −1 33.0 %, 0 33.8 %, +1 33.2 %', SLOW)
  const rows = await rowsOf(lab, 'tensors')
  expect(rows).toHaveLength(90)
  const row = rows.find(([name]) => name === 'blk.0.attn_q.weight')!
  const COUNTS = [87280, 87747, 87117]
  const entropy = COUNTS.map(count => count / 262144).reduce((bits, share) => bits - share * Math.log2(share), 0)
  expect(row.slice(1, 8)).toEqual(['I2_S', '512 × 512', row[3], '33.3 %', '33.5 %', '33.2 %', figure(entropy)])

  const report = await saved(lab, '#weights-save')
  const found = report.tensors.find(({ name }: { name: string }) => name === 'blk.0.attn_q.weight')
  expect(found.found.counts).toEqual(COUNTS)
  const queries = report.tensors.filter(({ name }: { name: string }) => name.endsWith('.attn_q.weight'))
  await lab.locator('#heat-measure').selectOption('Entropy, bits a weight')
  expect((await rowsOf(lab, 'heat-map')).find(([role]) => role === 'attn_q'))
    .toEqual(['attn_q', ...queries.map((tensor: { found: { entropy: number } }) => figure(tensor.found.entropy))])

  await lab.getByRole('button', { name: 'blk.0.attn_q.weight' }).click()
  await expect(lab.locator('#picture-text')).toContainText('rows 0 to 511 of 512, columns 0 to 511 of 512', SLOW)
  expect(await coloursOf(lab, 'picture-canvas')).toEqual({ [BLUE]: COUNTS[0], [WHITE]: COUNTS[1], [ORANGE]: COUNTS[2] })
  await expectAccessible(lab)

  // The same by parts of an address, and from the report alone.
  await lab.getByRole('button', { name: 'Open the bundled model' }).click()
  await expect.poll(() => rowsOf(lab, 'tensors').then(rows => rows.find(([name]) => name === row[0])?.[4]), SLOW).toBe('')
  await lab.getByRole('button', { name: 'Read all tensors' }).click()
  await expect.poll(() => rowsOf(lab, 'tensors').then(rows => rows.find(([name]) => name === row[0])), SLOW).toEqual(row)
  const file = { name: 'r.json', mimeType: 'application/json', buffer: Buffer.from(JSON.stringify({ tritloom: 'weights', version: 1, content: report })) }
  await lab.locator('#weights-report').setInputFiles(file)
  await expect(lab.getByRole('button', { name: 'Read all tensors' })).toBeDisabled()
  expect(await rowsOf(lab, 'tensors')).toEqual(rows)

  await lab.getByLabel('A file on this device').setInputFiles({ name: 'a.gguf', mimeType: '', buffer: Buffer.from('no model') })
  await expect(lab.getByRole('alert').locator('code')).toHaveText('bad-gguf')
})

test('a text is inspected on the page, with the numbers that it saves', async ({ lab }) => {
  await tab(lab, 'Inspect').click()
  await lab.getByLabel('A text').fill('The dog ran to the river.')
  // Without attention, an empty field does not keep the text from being inspected.
  const layer = lab.getByLabel('Layer', { exact: true })
  await expect(layer).toBeDisabled()
  for (const name of ['Activations', 'Attention']) await lab.getByRole('checkbox', { name }).check()
  await expect(layer).toHaveAttribute('required', '')
  const start = lab.getByRole('button', { name: 'Inspect', exact: true })
  await start.press('Enter')
  await expect(lab.locator('#token-list')).toContainText('river', SLOW)
  // Stop had the focus meanwhile.
  await expect(start).toBeFocused()
  const { tokens, activations, attention } = await saved(lab, '#inspect-save')
  await expect(lab.locator('#token-list button')).toHaveCount(tokens.length)
  expect(await rowsOf(lab, 'activations-table')).toHaveLength(activations.length)
  expect(attention.rows.map(({ length }: number[]) => length)).toEqual(tokens.map((_: unknown, n: number) => n + 1))
  const last = tokens.length - 1
  await lab.locator('#token-list button').nth(last).hover()
  await expect(lab.locator('#token')).toContainText(`probability ${(100 * Math.exp(tokens[last].logprob)).toFixed(1)} %`)
  const best = tokens[last].next[0]
  await expect(lab.locator('#token table').first().locator('tbody tr').first()).toContainText(`${(100 * Math.exp(best.logprob)).toFixed(1)} %`)
})

test('on a narrow screen, a file is loaded for the other tabs, and a text is too long for it', async ({ page }) => {
  await page.setViewportSize({ width: 390, height: 800 })
  await page.goto('/lab/?backend=cpu')
  const name = page.locator('#model-name')
  await expect(name).toHaveText(/tiny-stories/, SLOW)
  await page.getByLabel('A file on this device').setInputFiles('tests/data/tiny/tiny-bitnet-b1.58.gguf')
  await page.getByRole('button', { name: 'Load it for the other tabs' }).click()
  await expect(name).toHaveText(/^tiny-bitnet/, SLOW)
  await tab(page, 'Inspect').click()
  await page.getByLabel('A text').fill('a book '.repeat(100_000))
  await page.getByRole('button', { name: 'Inspect', exact: true }).click()
  const notice = page.getByRole('alert')
  await expect(notice.locator('code')).toHaveText('context-full', SLOW)
  await expect(notice).toContainText('Take a shorter text')
  // In view, wherever the reader is on the page.
  await expect(notice).toBeInViewport({ ratio: 1 })
  await page.getByLabel('A text').fill('a')
  await page.getByRole('checkbox', { name: 'Attention' }).check()
  await page.getByLabel('Layer', { exact: true }).fill('1')
  await page.getByRole('button', { name: 'Inspect', exact: true }).click()
  await expect(page.locator('#attention-text')).toContainText('Layer 1, head 0.', SLOW)
  await expect(notice).toHaveCount(0)

  // A server that gives no parts of files.
  await tab(page, 'Weights').click()
  await page.route('**/whole.gguf', route => route.fulfill({ body: 'GGUF' }))
  await page.getByLabel('Or the address of a file').fill(new URL('/whole.gguf', page.url()).href)
  await page.getByRole('button', { name: 'Open', exact: true }).click()
  await expect(notice).toContainText('the server does not give parts of it')
  await expect(notice).toContainText('download the file and choose it here')
})

test('the lab opens offline', async ({ page, context }) => {
  await page.goto('/lab/?backend=cpu#inspect')
  await expect(page.locator('#offline-state')).toHaveText('This page is kept and opens offline.', SLOW)
  await expect(page.locator('#model-name')).toHaveText(/tiny-stories/, SLOW)
  await context.setOffline(true)
  await page.reload()
  await expect(page.locator('#model-name')).toHaveText(/tiny-stories/, SLOW)
  await page.locator('#inspect-report').setInputFiles('tests/data/lab/inspect.json')
  await expect(page.locator('#token-list button')).toHaveCount(4)
})
