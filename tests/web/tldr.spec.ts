// The TL;DR demo, driven as a person would. The expected summaries are the bundled model's greedy
// ones: at every step the best token leads by 0.45 or more.
//
// Tests with a page of their own take over ten seconds: each page compiles the kernels anew.
import type { Page } from '@playwright/test'
import { expect, loseGpu, makeLosable, NARROW, SLOW, STORY, test as base, watchErrors } from './demos.ts'
import { ELSEWHERE } from './ports.ts'

const OWN_TEXT =
  'Mia wanted to go to the beach, but it was raining. She was sad. Her brother Ben said, ' +
  '"Let\'s build a fort!" They built a big fort with pillows. They read books in it all day. ' +
  'When the sun came out, they did not even see it. It was the best day.'
const OWN =
  'Mia and Ben could not go to the beach because of bad weather, so they built a fort instead ' +
  'and had fun.'

const widget = (page: Page) => page.locator('tldr-widget')
const button = (page: Page) => page.getByRole('button', { name: 'Sum it up' })
const stopButton = (page: Page) => page.getByRole('button', { name: 'Stop' })
const summary = (page: Page) => widget(page).locator('#summary')
const note = (page: Page) => widget(page).locator('#note')
const error = (page: Page) => widget(page).getByRole('alert')

async function sumUpOwn(page: Page, text: string) {
  const label = page.getByText('Sum up your own text')
  if (!(await page.getByLabel('Your text').isVisible())) await label.click()
  await page.getByLabel('Your text').fill(text)
  await page.getByRole('button', { name: 'Sum up this text' }).click()
}

/** Tells a model from a broken one, without waiting for the end of the summary. */
async function expectBeginningOf(page: Page, whole: string) {
  const length = async () => (await summary(page).textContent())!.length
  await expect.poll(length, SLOW).toBeGreaterThan(8)
  expect(whole.startsWith((await summary(page).textContent())!)).toBe(true)
}

/** Stops the summary, if one is still being written. In the page, because it may end at any moment. */
async function stop(page: Page) {
  await widget(page).evaluate(widget => {
    const button = widget.shadowRoot!.querySelector<HTMLElement>('#stop')!
    if (!button.hidden) button.click()
  })
  await expect(button(page)).toBeVisible()
}

const set = (page: Page, name: string, value: string) =>
  widget(page).evaluate((widget, [n, v]) => widget.setAttribute(n!, v!), [name, value])

/** Leaves out the attribute `preload`, as a page may that embeds the widget. */
const withoutPreload = (page: Page) =>
  page.route('**/tldr/', async route => {
    const response = await route.fetch()
    const body = (await response.text()).replace(' preload>', '>')
    await route.fulfill({ response, body })
  })

/** `tldr` is a page whose widget has the model. */
const test = base.extend<{ tldr: Page }, { visit: { page: Page, check: () => void } }>({
  visit: [
    async ({ browser }, use, { project }) => {
      const page = await browser.newPage({ baseURL: project.use.baseURL })
      const check = watchErrors(page)
      await page.goto('/tldr/')
      await use({ page, check })
      await page.close()
    },
    { scope: 'worker' }
  ],
  tldr: async ({ visit: { page, check } }, use) => {
    await use(page)
    check()
    await stop(page)
  }
})

test('one click loads the model and sums up the story', { tag: '@quick' }, async ({ page }) => {
  const asked: string[] = []
  page.on('request', request => asked.push(request.url()))
  await page.setViewportSize(NARROW)
  await withoutPreload(page)
  await page.goto('/tldr/')
  await expect(button(page)).toBeEnabled()
  expect(asked.filter(url => url.endsWith('.gguf'))).toEqual([])

  // The events that the page around the widget gets.
  await page.evaluate(() => {
    const told: string[] = []
    Object.assign(window, { told })
    for (const type of ['tldr-start', 'tldr-progress', 'tldr-text', 'tldr-done', 'tldr-error']) {
      document.addEventListener(type, () => told.at(-1) === type || told.push(type))
    }
  })
  await button(page).click()
  await expect(stopButton(page)).toBeVisible()
  await expect(note(page)).toHaveText(/^\d+ tokens, [\d.]+ tokens\/s$/, SLOW)
  await expect(summary(page)).toHaveText(STORY)
  const told = await page.evaluate(() => (window as unknown as { told: string[] }).told)
  // The model may still be stored while the text comes.
  const others = told.filter(type => type !== 'tldr-progress')
  expect(others.filter((type, n) => type !== others[n - 1])).toEqual(['tldr-start', 'tldr-text', 'tldr-done'])
  expect(told).toContain('tldr-progress')
})

test('works without a network after the first visit, page and model', async ({ page, context }) => {
  await page.goto('/tldr/')
  await expect(page.locator('#offline-state')).toContainText('opens and sums up offline', SLOW)

  await context.setOffline(true)
  await page.reload()
  await expect(page.getByRole('heading', { name: 'The silver bell' })).toBeVisible()
  await button(page).click()
  await expectBeginningOf(page, STORY)

  // The other pages are kept with it.
  await page.getByRole('link', { name: 'tritloom' }).click()
  await page.getByRole('link', { name: /^Chat Talk/ }).click()
  await expect(page.locator('#model-name')).toHaveText(/tiny-stories/, SLOW)
  await page.getByRole('link', { name: 'tritloom' }).click()
  await page.getByRole('link', { name: /A form from a text/ }).click()
  await page.getByLabel('JSON schema').fill('{"enum": ["yes", "no"]}')
  // Its module of grammars is kept too.
  await page.getByRole('button', { name: 'Fill the form' }).click(SLOW)
  await expect(page.locator('#outcome')).toHaveText('The record is valid by the schema.', SLOW)
})

test('says that the model is kept only when all of it is', async ({ tldr: page }) => {
  const state = page.locator('#offline-state')
  await expect(state).toContainText('opens and sums up offline', SLOW)
  const reported = async (phase: string, ...notes: object[]) => {
    await page.evaluate(detail => { document.dispatchEvent(new CustomEvent('tldr-progress', { detail })) }, { phase, notes })
    return state.textContent()
  }
  await reported('ready')
  expect(await reported('storing')).not.toContain('sums up offline')
  expect(await reported('ready', { kind: 'not-stored', why: 'full' })).not.toContain('sums up offline')
  expect(await reported('stored')).toContain('sums up offline')
})

test('sums up what the reader pastes', async ({ tldr: page }) => {
  await sumUpOwn(page, '   ')
  await expect(error(page)).toContainText('no text')
  await sumUpOwn(page, OWN_TEXT)
  await expect(note(page)).toHaveText(/tokens\/s$/, SLOW)
  await expect(summary(page)).toHaveText(OWN)
  await expect(error(page)).toBeHidden()
})

test('reads a text longer than the context in parts', async ({ tldr: page }) => {
  // Many parts, so that it still reads when it is stopped.
  await sumUpOwn(page, OWN_TEXT.repeat(200))
  await expect(note(page)).toHaveText(/^Reading: part \d+ of \d\d …$/, SLOW)
  await stopButton(page).click()
  await expect(note(page)).toHaveText('Stopped.', SLOW)
  await sumUpOwn(page, OWN_TEXT)
  await expectBeginningOf(page, OWN)
})

test('shows errors inside the widget, and works once they are mended', async ({ tldr: page }) => {
  await set(page, 'for', '#nowhere')
  await button(page).click()
  await expect(error(page)).toContainText('No element of this page is “#nowhere”.')

  await set(page, 'for', 'story')
  await set(page, 'model', '../models/none.gguf')
  await button(page).click()
  await expect(error(page)).toContainText('404', SLOW)
  await expect(error(page).locator('code')).toHaveText('http')

  await set(page, 'model', '../models/tiny-stories.gguf')
  await button(page).click()
  await expectBeginningOf(page, STORY)
  await expect(error(page)).toBeHidden()
})

test('stops, while loading and while writing', async ({ page, context }) => {
  let release = () => {}
  const held = new Promise<void>(resolve => (release = resolve))
  await context.route('**/tiny-stories.gguf', async route => {
    await held
    await route.continue()
  })
  await page.goto('/tldr/')
  await button(page).click()
  await stopButton(page).click()
  await expect(note(page)).toHaveText('Stopped.')
  release()

  // In the page, because the whole text comes within a moment.
  await widget(page).evaluate(widget => {
    const stop = () => widget.shadowRoot!.querySelector<HTMLElement>('#stop')!.click()
    widget.addEventListener('tldr-text', stop, { once: true })
  })
  await button(page).click()
  await expect(note(page)).toHaveText('Stopped.', SLOW)
  const left = await summary(page).textContent()
  expect(STORY.startsWith(left!)).toBe(true)
  expect(left).not.toBe(STORY)

  await button(page).click()
  await expectBeginningOf(page, STORY)
})

test('tells the time left and what else happens, while it loads', async ({ page }) => {
  await withoutPreload(page)
  await page.goto('/tldr/')
  await set(page, 'model', `${ELSEWHERE}/as/slower/tests/data/tiny/tiny-bitnet-b1.58.gguf`)
  await button(page).click()
  const notes = widget(page).locator('#load-notes')
  await expect(notes).toContainText('it starts over: the server', SLOW)
  await expect(widget(page).locator('#loading label')).toHaveText(/^Downloading: .*, \d+ s left$/)
  await stopButton(page).click()
  await expect(note(page)).toHaveText('Stopped.')
})

test('after a loss of the GPU it says so, and goes on with the next click', async ({ browser }) => {
  // The service worker would hide the page's requests from the test.
  const { baseURL } = test.info().project.use
  const page = await browser.newPage({ baseURL, serviceWorkers: 'block' })
  const check = watchErrors(page)
  // Where the CPU cannot compute, a GPU that is a CPU does.
  await makeLosable(page.context(), 'WebAssembly.validate = () => false')
  await page.goto('/tldr/')
  await sumUpOwn(page, OWN_TEXT)
  await expectBeginningOf(page, OWN)

  // In the middle of a summary.
  await loseGpu(page)
  await expect(error(page).locator('code')).toHaveText('device-lost', SLOW)
  await expect(error(page)).toContainText('Click again')
  await expect(note(page)).toBeHidden()
  await sumUpOwn(page, OWN_TEXT)
  await expect(note(page)).toHaveText('Bringing the model back …')
  await expectBeginningOf(page, OWN)
  await stopButton(page).click()
  await expect(note(page)).toHaveText('Stopped.', SLOW)

  // While nothing runs.
  await loseGpu(page)
  await expect(note(page)).toHaveText('The GPU was lost. The next summary brings the model back.')
  check()
  await page.close()
})
