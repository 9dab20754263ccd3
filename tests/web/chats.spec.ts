// The conversations of the chat demo, driven as a person would: branches, the list, files, links, settings, and what
// goes on after a reload, offline, in a hidden tab and in two tabs.
import type { Download, Page } from '@playwright/test'
import { readFile } from 'node:fs/promises'
import { alert, answers, ask, BYE, expectBye, field, figures, greedy, ready, sendButton, stopButton, test } from './chat.ts'
import { expect, expectAccessible, SLOW, WHO } from './demos.ts'

const button = (page: Page, name: string | RegExp) => page.getByRole('button', { name, exact: typeof name === 'string' })
const notices = (page: Page) => page.locator('#notices')
const list = (page: Page) => page.getByRole('navigation', { name: 'Chats' })
const entries = (page: Page) => list(page).getByRole('listitem').locator('.open')
const search = (page: Page) => page.getByLabel('Search the chats')
const turns = (page: Page) => page.getByRole('log').locator('.message')
/** The buttons of the last answer. */
const last = (page: Page) => page.getByRole('log').locator('.turn').last()

/** Puts another text in place of the last answer. */
async function writeAnswer(page: Page, text: string) {
  await last(page).getByRole('button', { name: 'Edit' }).click()
  await page.getByLabel('Edited answer').fill(text)
  await last(page).getByRole('button', { name: 'Save' }).click()
}

async function textOf(download: Promise<Download>): Promise<[name: string, text: string]> {
  const file = await download
  return [file.suggestedFilename(), await readFile(await file.path(), 'utf8')]
}

const length = async (page: Page) => (await answers(page).last().textContent())!.length

async function startStory(page: Page) {
  await field(page).fill('Tell me a story about a brave cat')
  await field(page).press('Enter')
  await expect.poll(() => length(page), SLOW).toBeGreaterThan('Model: Once upon'.length)
}

async function choose(page: Page, format: string) {
  const select = page.getByLabel('Answers are')
  if (!(await select.isVisible())) await page.getByText('Format and tools').click()
  await select.selectOption(format)
}

test('an answer is given again, edited and gone on with, and each branch stays', async ({ chat: page }) => {
  await greedy(page)
  await (await ask(page, 'Who are you?')).done()
  await page.getByLabel('Most tokens').fill('3')
  await last(page).getByRole('button', { name: 'Regenerate' }).click()
  await expect(figures(page)).toHaveText(/^3 tokens .*cut off at the limit$/, SLOW)
  await expect(last(page)).toContainText('2/2')
  await page.getByLabel('Most tokens').fill('')
  await last(page).getByRole('button', { name: 'Continue' }).click()
  await expect(answers(page)).toHaveText(`Model: ${WHO}`, SLOW)

  await writeAnswer(page, 'I am a')
  await expect(last(page)).toContainText('3/3')
  await last(page).getByRole('button', { name: 'Continue' }).click()
  await expect(answers(page)).toHaveText(`Model: ${WHO}`, SLOW)
  await last(page).getByRole('button', { name: 'Branch before' }).click()
  await expect(last(page)).toContainText('2/3')
  await expect(last(page).getByRole('button', { name: 'Branch before' })).toBeFocused()

  const question = page.getByRole('log').locator('.turn').first()
  await question.getByRole('button', { name: 'Edit' }).click()
  await page.getByLabel('Edited message').fill('Good night!')
  await button(page, 'Ask this').click()
  await expect(answers(page)).toHaveText(`Model: ${BYE}`, SLOW)
  await question.getByRole('button', { name: 'Branch before' }).click()
  await expect(turns(page)).toHaveText(['You: Who are you?', `Model: ${WHO}`])

  // A branch as a chat of its own.
  await last(page).getByRole('button', { name: 'Branch', exact: true }).click()
  await expect(entries(page).first()).toHaveText('Who are you? (branch)')
  await expect(entries(page).first()).toHaveAttribute('aria-current', 'true')
  await expect(turns(page)).toHaveText(['You: Who are you?', `Model: ${WHO}`])
  await expect(last(page)).not.toContainText(/\d\/\d/)
})

test('chats are kept, found, renamed, deleted and brought back', async ({ chat: page }) => {
  await expectBye(page)
  await button(page, 'Rename').click()
  await page.getByLabel('Title').fill('Sleepy <b>words</b>')
  await page.keyboard.press('Enter')
  await expect(entries(page).first()).toHaveText('Sleepy <b>words</b>')
  await expect(entries(page).first()).toBeFocused()
  await button(page, 'Rename').click()
  await page.keyboard.press('Escape')

  await search(page).fill('SLEEP well')
  await expect(entries(page).first()).toContainText('Bye! Sleep well.')
  await search(page).fill('no such words')
  await expect(list(page)).toContainText('No chat has these words.')
  await search(page).fill('')

  await page.reload()
  await ready(page)
  await expect(turns(page)).toHaveText(['You: Good night!', `Model: ${BYE}`])
  await expect(page.locator('#context')).toHaveText(/^[1-9]\d of 1.?024 tokens$/)
  const count = await entries(page).count()
  await button(page, 'Delete').click()
  await expect(entries(page)).toHaveCount(count - 1)
  await expect(turns(page)).toHaveCount(0)
  await button(page, 'Undo').click()
  await expect(turns(page)).toHaveText(['You: Good night!', `Model: ${BYE}`])
  await expect(notices(page)).not.toContainText('was deleted')
})

test('chats are exported and imported, as JSON with all branches and as Markdown', async ({ chat: page }) => {
  await expectBye(page)
  await writeAnswer(page, '# Two\n\nlines')
  const saved = page.waitForEvent('download')
  await button(page, 'Export as .json').click()
  const [name, json] = await textOf(saved)
  expect(name).toBe('Good night!.json')
  const savedText = page.waitForEvent('download')
  await button(page, 'Export as .md').click()
  const [, markdown] = await textOf(savedText)
  expect(markdown).toBe('# Good night!\n\n## You\n\nGood night!\n\n## Model\n\n# Two\n\nlines\n')
  const all = page.waitForEvent('download')
  await button(page, 'Export all').click()
  expect(JSON.parse((await textOf(all))[1]).conversations.length).toBe(await entries(page).count())

  const give = (name: string, text: string) =>
    page.locator('#import-file').setInputFiles({ name, mimeType: '', buffer: Buffer.from(text) })
  await button(page, 'New chat').click()
  await give('a.json', json)
  await expect(answers(page)).toHaveText('Model: Twolines')
  await last(page).getByRole('button', { name: 'Branch before' }).click()
  await expect(answers(page)).toHaveText(`Model: ${BYE}`)
  await button(page, 'New chat').click()
  await give('a.md', markdown)
  await expect(answers(page)).toHaveText('Model: Twolines')
  await give('a.txt', 'A letter')
  await expect(alert(page)).toContainText('Could not import a.txt')
  await expect(alert(page)).toContainText('Choose a .json or .md file')
  await give('a.md', markdown)
  await expect(alert(page)).toHaveCount(0)
})

test('an answer that was being written goes on after a reload', async ({ chat: page }) => {
  await greedy(page)
  await startStory(page)
  // The answer so far is stored when the page is left, and every second.
  const before = await answers(page).innerText()
  await page.reload()
  await expect(turns(page).first()).toHaveText(/brave cat/)
  await expect(stopButton(page)).toBeVisible(SLOW)
  await expect.poll(() => length(page), SLOW).toBeGreaterThan(before.length + 10)
  expect((await answers(page).innerText()).startsWith(before.slice(0, 12))).toBe(true)
  await page.keyboard.press('Escape')
  await expect(figures(page)).toHaveText('stopped', SLOW)
  // One that was stopped stays as it is.
  await page.reload()
  await ready(page)
  await expect(figures(page)).toHaveText('stopped')
})

test('two chats answer at the same time, and another tab shows what comes', async ({ chat: page }) => {
  await choose(page, 'JSON by a schema')
  await page.getByLabel('JSON schema').fill('{ "type": "string", "minLength": 3000 }')
  await startStory(page)
  await button(page, 'New chat').click()
  await button(page, 'Defaults').click()
  await expect(entries(page).first()).toContainText('writing')
  await expectBye(page)
  await entries(page).filter({ hasText: 'brave cat' }).first().click()
  await expect(stopButton(page)).toBeVisible()
  const now = await length(page)
  await expect.poll(() => length(page), SLOW).toBeGreaterThan(now)

  const other = await page.context().newPage()
  await other.goto('/chat/')
  await entries(other).filter({ hasText: 'brave cat' }).first().click()
  await expect.poll(() => length(other), SLOW).toBeGreaterThan('Model: Once upon'.length)
  await ready(other)
  // The first tab writes it, so this one does not.
  await expect(stopButton(other)).toBeHidden()
  await page.bringToFront()
  await page.keyboard.press('Escape')
  await expect(figures(page)).toHaveText('stopped', SLOW)
  await expect(figures(other)).toHaveText('stopped', SLOW)
  await expect(answers(other)).toHaveText((await answers(page).textContent())!)
  await other.close()
})

test('nothing on the page shifts while an answer comes', async ({ chat: page }) => {
  await greedy(page)
  await startStory(page)
  await page.evaluate(() => {
    let shift = 0
    new PerformanceObserver(entries => {
      for (const entry of entries.getEntries()) shift += (entry as unknown as { value: number }).value
    }).observe({ type: 'layout-shift' })
    Object.assign(window, { shift: () => shift })
  })
  await expect(figures(page)).toHaveCount(1, SLOW)
  await page.evaluate(() => new Promise(requestAnimationFrame))
  expect(await page.evaluate(() => (window as unknown as { shift(): number }).shift())).toBe(0)
})

test('a tab that is hidden gets its whole answer', async ({ chat: page }) => {
  await greedy(page)
  await page.evaluate(() => {
    Object.assign(window, { requestAnimationFrame: () => 1 })
    Object.defineProperty(document, 'visibilityState', { value: 'hidden', configurable: true })
  })
  await (await ask(page, 'Who are you?')).done()
  await expect(answers(page)).toHaveText(`Model: ${WHO}`)
  await page.evaluate(() => {
    Reflect.deleteProperty(window, 'requestAnimationFrame')
    Reflect.deleteProperty(document, 'visibilityState')
  })
  await page.reload()
  await ready(page)
})

test('settings by presets and by hand are kept for the next visit', async ({ chat: page }) => {
  const preset = page.getByLabel('Preset')
  await expect(preset).toHaveValue('Balanced')
  await preset.selectOption('Creative')
  await expect(page.getByLabel('Temperature')).toHaveValue('1')
  await expect(page.getByLabel('Min-p')).toHaveValue('0.05')
  await page.getByLabel('Temperature').fill('0.9')
  await expect(preset).toHaveValue('Own')
  await page.getByLabel('Instructions').fill('You are a pirate.')
  await page.reload()
  await ready(page)
  await expect(page.getByLabel('Temperature')).toHaveValue('0.9')
  await expect(page.getByLabel('Instructions')).toHaveValue('You are a pirate.')
  await preset.selectOption('Precise')
  await expect(page.getByLabel(/Greedy/)).toBeChecked()
  await (await ask(page, 'Good night!')).done()
  // The instructions are part of the prompt, and the context that is used counts all.
  const [, prompt] = /(\d+) prompt tokens/.exec(await figures(page).innerText())!
  expect(Number(prompt)).toBeGreaterThan(15)
  await expect(page.locator('#context')).toHaveText(/^\d+ of 1.?024 tokens$/)
  expect(Number.parseInt(await page.locator('#context').innerText())).toBeGreaterThan(Number(prompt))
  await expect(page.locator('#rate')).toHaveText(/^[\d.]+ tokens\/s$/)
  await expect(page.locator('#adapter')).toHaveText(/the CPU with/)
})

test('HTML in an answer is never more than text', async ({ chat: page }) => {
  const html = `<img src=x onerror=document.title=1><script>document.title=2</script>**bold**`
  await greedy(page)
  await choose(page, 'JSON by a schema')
  await page.getByLabel('JSON schema').fill('{')
  await expect(page.locator('#format-fault')).toContainText('The schema is no JSON')
  await field(page).fill('Go')
  await sendButton(page).click()
  await expect(page.getByLabel('JSON schema')).toBeFocused()
  await page.getByLabel('JSON schema').fill(JSON.stringify({ const: html }))
  await field(page).press('Enter')
  await expect(figures(page)).toHaveCount(1, SLOW)
  // JSON is shown as it is, all else as Markdown.
  await expect(answers(page).locator('pre')).toHaveText(JSON.stringify(html))
  await writeAnswer(page, html)
  await expect(answers(page)).toHaveText(`Model: ${html.replaceAll('**', '')}`)
  await expect(page.getByRole('log').locator('img, script')).toHaveCount(0)
  await expect(page).toHaveTitle(/Chat/)
})

test('a tool that the model calls is answered by hand', async ({ chat: page }) => {
  await greedy(page)
  await choose(page, 'calls of tools')
  await page.getByLabel('The model calls').selectOption('weather')
  await page.getByLabel('Most tokens').fill('60')
  await field(page).fill('How warm is it?')
  await field(page).press('Enter')
  await expect(last(page).locator('.call')).toHaveText(/^Calls weather \{"city":".*"\}$/, SLOW)
  // The tools are part of the prompt.
  await expect.poll(async () => Number.parseInt(await page.locator('#context').innerText())).toBeGreaterThan(200)
  await page.getByLabel('Result of weather').fill('7 degrees')
  await page.getByLabel('Most tokens').fill('8')
  await button(page, 'Give the results').click()
  await expect(page.locator('.message.tool')).toHaveText('Result: 7 degrees')
  await expect(answers(page).last()).toHaveText(/^Model: \w/, SLOW)
  await expect(figures(page)).toHaveCount(2, SLOW)
})

test('text files go with a message, others are refused with what to do', async ({ chat: page }) => {
  const attach = (name: string, text: string | Buffer) =>
    page.locator('#attach-file').setInputFiles({ name, mimeType: '', buffer: Buffer.from(text) })
  const attached = page.getByRole('list', { name: 'Attached files' }).getByRole('listitem')
  await attach('book.pdf', Buffer.from([0x25, 0x50, 0x44, 0x46, 0, 0xff]))
  await expect(page.locator('#composer-note')).toHaveText('book.pdf is no text file. Save its text as a .txt file and attach that.')
  await attach('a.txt', 'The cat is red.')
  await attach('b.txt', 'The dog is blue.')
  await expect(attached).toHaveText(['a.txt×', 'b.txt×'])
  await button(page, 'Remove a.txt').click()
  await page.getByLabel('Most tokens').fill('4')
  await (await ask(page, 'Who are you?')).done()
  await expect(attached).toHaveCount(0)
  await turns(page).first().getByText('b.txt · 16 bytes').click()
  await expect(turns(page).first().locator('pre')).toHaveText('The dog is blue.')
  const [, prompt] = /(\d+) prompt tokens/.exec(await figures(page).innerText())!
  expect(Number(prompt)).toBeGreaterThan(25)

  // One that is too long comes back with the message.
  await button(page, 'New chat').click()
  await attach('long.txt', 'Once upon a time there was a cat. '.repeat(300))
  await field(page).fill('Why?')
  await field(page).press('Enter')
  await expect(alert(page).locator('code')).toHaveText('context-full', SLOW)
  await expect(alert(page)).toContainText('Write less')
  await expect(attached).toHaveText(['long.txt×'])
  await button(page, 'Remove long.txt').click()
})

test('code is copied, and a link carries the message', async ({ chat: page }) => {
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
  const copied = () => page.evaluate(() => navigator.clipboard.readText())
  await expectBye(page)
  await writeAnswer(page, 'So:\n\n```js\nconst a = 1 < 2\n```')
  await answers(page).getByRole('button', { name: 'Copy' }).click()
  await expect(answers(page).getByRole('button', { name: 'Copied' })).toBeVisible()
  expect(await copied()).toBe('const a = 1 < 2')
  await last(page).locator('.actions').getByRole('button', { name: 'Copy' }).click()
  expect(await copied()).toBe('So:\n\n```js\nconst a = 1 < 2\n```')

  await field(page).fill('Who & what?')
  await button(page, 'Copy a link').click()
  expect(new URL(await copied()).hash).toBe('#prompt=Who+%26+what%3F')
  await page.evaluate(() => { navigator.clipboard.writeText = async () => { throw new Error('no') } })
  await last(page).locator('.actions').getByRole('button', { name: 'Copy' }).click()
  await expect(page.locator('#spoken')).toContainText('copy it by the keyboard')
})

test('a link with a message downloads nothing by itself', async ({ page }) => {
  const asked: string[] = []
  page.on('request', request => {
    if (request.method() === 'GET' && request.url().endsWith('.gguf')) asked.push(request.url())
  })
  await page.goto('/chat/#prompt=Good+night!')
  await expect(notices(page)).toContainText('This link carries a message. A model has to answer it: load the bundled one, 10.3 MB, or choose another.')
  await expect(field(page)).toHaveValue('Good night!')
  expect(asked).toEqual([])
  await expect(sendButton(page)).toBeDisabled()
  await button(page, 'Load the bundled model').click()
  await ready(page)
  await greedy(page)
  await sendButton(page).click()
  await expect(answers(page)).toHaveText(`Model: ${BYE}`, SLOW)
  // It is here now, so another such link loads it.
  await page.goto('/chat/?again#prompt=Who%3F')
  await ready(page)
  await expect(field(page)).toHaveValue('Who?')
  await expect(page).toHaveURL(/again$/)
})

test('a download is paused and resumed, and a stored model deleted', async ({ page, context }) => {
  let release = () => {}
  const held = new Promise<void>(resolve => { release = resolve })
  let count = 0
  await context.route('**/tiny-stories.gguf', async route => {
    // The first parts come, the others wait.
    if (route.request().method() === 'GET' && ++count > 2) await held
    await route.continue().catch(() => {})
  })
  await page.goto('/chat/')
  await button(page, 'Pause').click(SLOW)
  await expect(notices(page)).toContainText('The download is paused. What has come is kept on this device.')
  const stored = page.locator('#stored')
  await stored.locator('summary').click()
  await expect(stored).toContainText(/tiny-stories\.gguf [\d.]+ (?:bytes|[kM]B) of 10\.3 MB/)
  release()
  await button(page, 'Resume').click()
  await ready(page)
  await expect(stored).toContainText('tiny-stories.gguf 10.3 MB')
  await button(page, 'Delete tiny-stories.gguf').click()
  await button(page, 'Delete 10.3 MB? tiny-stories.gguf').click()
  await expect(stored).toContainText('No model is stored.')
})

test('where the browser refuses storage, chats work and say that they are not kept', async ({ page }) => {
  await page.addInitScript(() => {
    const refuse = () => { throw new DOMException('refused', 'SecurityError') }
    IDBFactory.prototype.open = refuse
    for (const name of ['localStorage', 'sessionStorage']) Object.defineProperty(window, name, { get: refuse })
  })
  await page.goto('/chat/')
  await expect(notices(page)).toContainText('This browser does not let the page keep chats')
  await ready(page)
  await expectBye(page)
  await button(page, 'New chat').click()
  await entries(page).first().click()
  await expect(turns(page)).toHaveText(['You: Good night!', `Model: ${BYE}`])
})

test('where the disk is full, the answer stays on the page and the page says so', async ({ chat: page }) => {
  await page.evaluate(() => {
    const { put } = IDBObjectStore.prototype
    IDBObjectStore.prototype.put = function (value, key) {
      const request = put.call(this, value, key)
      this.transaction.abort()
      return request
    }
    Object.assign(window, { restore: () => { IDBObjectStore.prototype.put = put } })
  })
  await expectBye(page)
  await expect(alert(page)).toContainText('The chat could not be kept')
  await expect(alert(page)).toContainText('Delete chats or stored models')
  await page.evaluate(() => (window as unknown as { restore(): void }).restore())
  await page.reload()
  await ready(page)
})

test('opens and answers without a network after the first visit', async ({ page, context }) => {
  await page.goto('/chat/')
  await ready(page)
  await page.locator('#stored summary').click()
  await expect(page.locator('#stored')).toContainText('tiny-stories.gguf 10.3 MB', SLOW)
  await page.evaluate(() => navigator.serviceWorker.ready)
  await context.setOffline(true)
  await page.reload()
  await ready(page)
  await expectBye(page)
})

test('can be used without seeing or a mouse, on narrow and wide screens, light and dark', async ({ chat: page }) => {
  await expectBye(page)
  await writeAnswer(page, '### Plan\n\n- [x] one\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```js\nx\n```\n\n> [link](https://example.com)')
  await choose(page, 'calls of tools')
  await expectAccessible(page)
  // A screen reader hears each block of an answer when it is done.
  await expect(page.getByRole('log')).toHaveAttribute('aria-live', 'off')
  await expect(page.locator('#spoken')).toContainText(BYE)
  await expect(page.locator('#spoken')).toHaveAttribute('aria-live', 'polite')

  // On a narrow screen the panels open over the conversation.
  await page.setViewportSize({ width: 390, height: 800 })
  await expect(search(page)).toBeHidden()
  await button(page, 'Chats').press('Enter')
  await expect(button(page, 'Chats')).toHaveAttribute('aria-expanded', 'true')
  await entries(page).last().click()
  await expect(search(page)).toBeHidden()
  await expect(turns(page).first()).toBeVisible()
  await button(page, 'Chats').click()
  await search(page).press('Escape')
  await expect(search(page)).toBeHidden()
  await expect(button(page, 'Chats')).toBeFocused()
  await button(page, 'Settings').click()
  await expectAccessible(page)
  await page.setViewportSize({ width: 390, height: 800 })
  await button(page, 'New chat').click()
  await expect(field(page)).toBeFocused()
  await expect(page.getByLabel('Preset')).toBeHidden()
  await field(page).fill('Good night!')
  await field(page).press('Enter')
  await expect(last(page).getByRole('button', { name: 'Regenerate' })).toBeEnabled(SLOW)
  await last(page).getByRole('button', { name: 'Edit' }).click()
  await page.keyboard.type(' Me too.')
  await last(page).getByRole('button', { name: 'Save' }).click()
  await expect(last(page)).toContainText('2/2')
  await button(page, 'Chats').click()
  await button(page, 'Rename').click()
  await page.keyboard.type('A name')
  await page.keyboard.press('Enter')
  await expect(entries(page).first()).toHaveText('A name')
  await search(page).press('Escape')
  await page.setViewportSize({ width: 1280, height: 720 })
})
