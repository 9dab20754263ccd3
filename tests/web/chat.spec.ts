// The chat demo, driven as a person would. The expected answers are the bundled model's greedy
// ones, to questions where the best token leads by far (see models/tiny-stories.goldens.json).
import type { Page, Request } from '@playwright/test'
import { readFile } from 'node:fs/promises'
import { describeNote, describeProgress, isLasting } from '../../pkg/words.js'
import { alert, answers, ask, expectBye, field, figures, greedy, loadButton, ready, recorded, recordProgress, sendButton, stopButton, test } from './chat.ts'
import { expect, loseGpu, makeLosable, SLOW, WHO } from './demos.ts'
import { ELSEWHERE } from './ports.ts'

const MODEL = 'models/tiny-stories.gguf'
/** A model of random weights that loads in no time. */
const SMALL = '/tests/data/tiny/tiny-bitnet-b1.58.gguf'
/** A model made by hand that reasons before it answers, see tests/data/thinking/make.py. */
const THINKING = '/tests/data/thinking/thinking.gguf'

/** A new chat may share the first tokens of the template with the chat before. */
const FIGURES = new RegExp(
  '^\\d+ tokens · [\\d.]+ tokens/s · first after [\\d.]+ s · \\d+ prompt tokens' +
  '(, \\d of them reused)?$'
)

const known = (page: Page) => page.getByRole('dialog', { name: 'Known models' })
/** The entry of a model in the dialog. */
const entry = (page: Page, name: string) =>
  known(page).getByRole('listitem').filter({ has: page.getByRole('heading', { name, exact: true }) })

/** Follows a link that names a model, and agrees to its download. */
async function follow(page: Page, address: string) {
  await page.goto(`/chat/?model=${address}`)
  await page.getByRole('button', { name: 'Download', exact: true }).click()
}

/** Opens the dialog as one does who has no mouse. */
async function openKnown(page: Page) {
  await page.getByRole('button', { name: 'Known models' }).press('Enter')
  await expect(entry(page, 'Tiny stories')).toBeVisible()
}

test('answers over two turns', { tag: '@quick' }, async ({ chat: page }) => {
  await greedy(page)
  const first = await ask(page, 'Who are you?')
  await first.done()
  await expect(answers(page)).toHaveText(`Model: ${WHO}`)
  await expect(figures(page)).toHaveText(FIGURES)

  const second = await ask(page, 'Thank you!')
  await second.done()
  await expect(answers(page).nth(1)).toHaveText('Model: You are welcome!')
  // The first question stays computed. A new chat shares only the first tokens of the template.
  const reused = async () =>
    Number(/(\d+) of them reused/.exec(await figures(page).last().innerText())?.[1] ?? 0)
  expect(await reused()).toBeGreaterThan(10)

  await page.getByRole('button', { name: 'New chat' }).click()
  await expect(answers(page)).toHaveCount(0)
  await expectBye(page)
  expect(await reused()).toBeLessThan(8)
})

test('a link to a model asks before anything is downloaded, unless it is here already', async ({ page }) => {
  const fetched: string[] = []
  page.on('request', request => {
    if (request.method() === 'GET' && request.url().startsWith(ELSEWHERE)) fetched.push(request.url())
  })
  await page.goto(`/chat/?model=${ELSEWHERE}${SMALL}`)
  const { host } = new URL(ELSEWHERE)
  await expect(page.locator('#notices')).toContainText(`This link loads a model from ${host}. It has 556 kB.`)
  expect(fetched).toEqual([])
  await page.getByRole('button', { name: 'Download', exact: true }).click()
  await ready(page, /^tiny-bitnet/)
  await expect(page.getByRole('button', { name: 'Download', exact: true })).toHaveCount(0)
  await page.reload()
  await ready(page, /^tiny-bitnet/)
})

test('a server that is slow to say how large a linked model is holds up nothing', async ({ page, context }) => {
  await page.clock.install()
  const address = `${ELSEWHERE}${SMALL}`
  let answer = () => {}
  const held = new Promise<void>(resolve => { answer = resolve })
  await context.route(url => url.href.startsWith(address), async route => {
    if (route.request().method() === 'HEAD') await held
    await route.continue()
  })
  const download = page.getByRole('button', { name: 'Download', exact: true })
  await page.goto(`/chat/?model=${address}`)
  await expect(page.locator('#model-name')).toHaveText('Asking for the size of the model')
  // The page does not wait longer. Then the button means the link, whatever the form says.
  await page.clock.fastForward(11_000)
  await expect(page.locator('#notices')).toContainText('How large it is, is not known.')
  await page.getByLabel('Tiny stories').check()
  await download.click()
  await ready(page, /^tiny-bitnet/)

  // A reader who does not wait keeps the model of their choice.
  await page.goto(`/chat/?model=${address}?again`)
  await expect(page.locator('#model-name')).toHaveText('Asking for the size of the model')
  await page.getByLabel('Tiny stories').check()
  await loadButton(page).click()
  await ready(page)
  const answered = page.waitForResponse(response => response.request().method() === 'HEAD')
  answer()
  await answered
  await expectBye(page)
  await expect(page.locator('#model-name')).toHaveText(/tiny-stories/)
  await expect(download).toHaveCount(0)
})

test('the reasoning of an answer is folded, and can be switched off', async ({ page }) => {
  await follow(page, `${ELSEWHERE}${THINKING}`)
  await ready(page, /^Reasons/)
  await expect(page.locator('#info')).toContainText('qwen3')
  await greedy(page)
  const first = await ask(page, 'Is it warm?')
  await first.done()
  await expect(answers(page)).toHaveText('Model: It is warm today!')
  const reasoning = page.getByRole('log').locator('.reasoning')
  await expect(reasoning.locator('p')).toBeHidden()
  await reasoning.getByText('Reasoning').click()
  await expect(reasoning.locator('p')).toHaveText('Is it cold? In summer no.')

  await page.getByLabel('Reason before answering').uncheck()
  const second = await ask(page, 'Is it warm?')
  await second.done()
  await expect(answers(page).nth(1)).toHaveText('Model: It is warm today!')
  await expect(reasoning).toHaveCount(1)
})

test('the bundled model is served with an ETag and in ranges', async ({ request }) => {
  const bytes = await readFile(MODEL)
  const get = (headers = {}) => request.get(`/${MODEL}`, { headers })
  const whole = await get()
  expect(whole.status()).toBe(200)
  expect(Buffer.compare(await whole.body(), bytes)).toBe(0)
  const { etag } = whole.headers()
  expect(etag).toMatch(/^".+"$/)
  const part = await get({ 'Range': 'bytes=1000-1999', 'If-Range': etag! })
  expect(part.status()).toBe(206)
  expect(part.headers()['content-range']).toBe(`bytes 1000-1999/${bytes.length}`)
  expect(Buffer.compare(await part.body(), bytes.subarray(1000, 2000))).toBe(0)
  const tail = await get({ Range: `bytes=${bytes.length - 5}-${bytes.length + 5}` })
  expect(Buffer.compare(await tail.body(), bytes.subarray(-5))).toBe(0)
  for (const headers of [{ 'Range': 'bytes=0-9', 'If-Range': '"other"' }, { Range: 'bytes=9-0' }]) {
    expect((await get(headers)).status()).toBe(200)
  }
})

test('streams a story, stops it on Esc and by the button, and goes on', async ({ chat: page }) => {
  await page.getByRole('button', { name: 'Tell me a story about a brave cat' }).click()
  await field(page).press('Enter')
  await expect(stopButton(page)).toBeVisible()

  const length = async () => (await answers(page).last().textContent())!.length
  await expect.poll(length, SLOW).toBeGreaterThan('Model: '.length)
  const early = await length()
  await expect.poll(length, SLOW).toBeGreaterThan(early)
  await page.keyboard.press('Escape')
  await expect(figures(page)).toHaveText(/stopped/, SLOW)
  const stopped = await length()
  await page.waitForTimeout(1000)
  expect(await length()).toBe(stopped)

  await field(page).fill('Tell me a story.')
  await sendButton(page).click()
  await expect.poll(length, SLOW).toBeGreaterThan('Model: '.length)
  await stopButton(page).click()
  await expect(figures(page).nth(1)).toHaveText(/stopped/, SLOW)

  // The model is as good as before.
  await page.getByRole('button', { name: 'New chat' }).click()
  await expectBye(page)
})

test('the known models are listed with size, licence and origin, as in the guide', async ({ chat: page }) => {
  const guide = await readFile('docs/MODELS.md', 'utf8')
  const asked: string[] = []
  const note = (request: Request) => asked.push(request.url())
  page.on('request', note)
  await openKnown(page)
  await expect(known(page)).toContainText('How much memory the GPU has, no page can know.')
  const bitnet = entry(page, 'BitNet b1.58 2B-4T')
  await expect(bitnet).toContainText(/1\.19 GB · 2B weights · I2_S · context 4.?096 · MIT · at least 1\.19 GB of memory/)
  await expect(bitnet.getByRole('button')).toHaveText('Download 1.19 GB BitNet b1.58 2B-4T')
  const repository = 'https://huggingface.co/microsoft/bitnet-b1.58-2B-4T-gguf'
  await expect(bitnet.getByRole('link', { name: 'Its files' })).toHaveAttribute('href', repository)

  const withoutFile: string[] = []
  for (const section of await known(page).locator('section').all()) {
    const bundled = await section.getByText('Tiny stories').count()
    await expect(section).toContainText(bundled ? 'Run by our tests.' : 'As published; not run by us.')
    if (bundled) continue
    for (const item of await section.getByRole('listitem').all()) {
      const name = await item.getByRole('heading').innerText()
      const [size, , weights] = (await item.locator('.facts').innerText()).split(' · ')
      expect(guide).toContain(`| ${name} | ${size} | ${weights} |`)
      if (await item.getByLabel('Address of a GGUF file').isVisible()) withoutFile.push(name)
    }
  }
  // The names of these files are not published.
  expect(withoutFile).toEqual([
    'Ternary-Bonsai 1.7B', 'Ternary-Bonsai 4B', 'Ternary-Bonsai 8B', 'Bonsai 1.7B', 'Bonsai 4B', 'Bonsai 8B',
    'Falcon-E 1B Instruct', 'Falcon-E 3B Instruct', 'Falcon3 7B Instruct, 1.58 bit'
  ])
  await page.keyboard.press('Escape')
  await expect(known(page)).toBeHidden()
  await expect(page.getByRole('button', { name: 'Known models' })).toBeFocused()
  // To list them downloads nothing of them.
  page.off('request', note)
  expect(asked.filter(url => /\.gguf|huggingface/.test(url))).toEqual([])
})

test('a known model fits, does not fit, or it is unknown', async ({ chat: page }) => {
  // 300 MB free, and a GPU whose bindings hold the scores of 140 000 tokens.
  await page.evaluate(() => {
    const estimate = async () => ({ quota: 700e6, usage: 400e6 })
    const requestAdapter = async () => {
      const adapter = (await GPU.prototype.requestAdapter.call(navigator.gpu))!
      const limits = { maxStorageBufferBindingSize: 560_000 }
      return { features: adapter.features, info: { vendor: 'a vendor' }, limits }
    }
    Object.assign(navigator.storage, { estimate })
    Object.assign(navigator.gpu, { requestAdapter })
  })
  const verdict = (name: string) => entry(page, name).locator('.verdict')
  await openKnown(page)
  await expect(verdict('Tiny stories')).toHaveText('Fits It is on this device already.')
  await expect(verdict('BitCPM-CANN 0.5B')).toHaveText('Fits The GPU’s limits allow it, and there is room to store it.')
  const large = 'It has 551 MB, and the browser can store 300 MB more. It can run, but is downloaded again each time.'
  await expect(verdict('BitCPM-CANN 1B')).toHaveText(`Does not fit ${large}`)
  const limit = 'It needs 607 kB in one binding; this GPU allows 560 kB.'
  await expect(verdict('Ternary-Bonsai 1.7B')).toHaveText(`Does not fit ${limit}`)
  await page.keyboard.press('Escape')

  // There is room if older models give way; here the bundled one.
  await page.evaluate(() => {
    Object.assign(navigator.storage, { estimate: async () => ({ quota: 700e6, usage: 460e6 }) })
  })
  await openKnown(page)
  const replaces = 'Fits It is stored in place of older models, as 240 MB are free.'
  await expect(verdict('BitCPM-CANN 0.5B')).toHaveText(replaces)
  await page.keyboard.press('Escape')

  await page.evaluate(() => {
    Object.assign(navigator.storage, { estimate: async () => ({ quota: 2e9, usage: 0 }) })
  })
  await openKnown(page)
  await expect(verdict('Falcon-E 1B Instruct')).toHaveText(/^Unknown There is room to store it/)
  await page.keyboard.press('Escape')

  await page.evaluate(() => {
    Object.assign(navigator.storage, { estimate: async () => ({}) })
  })
  await openKnown(page)
  await expect(verdict('BitNet b1.58 2B-4T')).toHaveText(/^Unknown This browser does not say/)
  await page.keyboard.press('Escape')
  await page.evaluate(() => {
    Reflect.deleteProperty(navigator.storage, 'estimate')
    Reflect.deleteProperty(navigator.gpu, 'requestAdapter')
  })
})

test('a known model is loaded from the address of a file, where only its repository is known', async ({ chat: page }) => {
  await openKnown(page)
  const bonsai = entry(page, 'Ternary-Bonsai 1.7B')
  await bonsai.getByRole('button', { name: 'Download some 457 MB' }).click()
  await expect(known(page)).toBeVisible() // Without an address there is nothing to load.
  await bonsai.getByLabel('Address of a GGUF file of Ternary-Bonsai 1.7B').fill(`${ELSEWHERE}${SMALL}`)
  await page.keyboard.press('Enter')
  await expect(known(page)).toBeHidden()
  await expect(page.locator('#model-name')).toHaveText(/^tiny-bitnet/, SLOW)
  await expect(page.getByLabel('From an address')).toBeChecked()

  // The button of a model whose file is known asks for that file.
  const asked: string[] = []
  await page.context().route('https://huggingface.co/**', route => {
    asked.push(route.request().url())
    return route.fulfill({ status: 404, headers: { 'access-control-allow-origin': '*' } })
  })
  await openKnown(page)
  await entry(page, 'BitCPM-CANN 0.5B').getByRole('button', { name: 'Download 245 MB' }).click()
  await expect(alert(page)).toContainText('Could not load BitCPM-CANN 0.5B', SLOW)
  const file = 'openbmb/BitCPM-CANN-0.5B-gguf/resolve/main/bitcpm4-0.5b-tq2_0.gguf'
  expect(asked[0]).toBe(`https://huggingface.co/${file}`)
  await page.context().unroute('https://huggingface.co/**')

  await openKnown(page)
  await entry(page, 'Tiny stories').getByRole('button', { name: 'Load' }).click()
  await ready(page)
})

test('tells how far a load is, and when it comes from the cache', async ({ visit, chat: page }) => {
  expect(visit.progress).toMatch(/Downloading: [\d.]+ [kM]B of 10\.3 MB/)

  await recorded(page)
  await loadButton(page).click()
  await expect(page.locator('#loading')).toBeVisible()
  await ready(page)
  expect(await recorded(page)).toMatch(/from cache/)
})

test('tells the time left and what else happens, while a model loads', async ({ page }) => {
  await page.addInitScript(recordProgress)
  await follow(page, `${ELSEWHERE}/as/slow${SMALL}`)
  await expect(page.locator('#load-notes')).toContainText('it starts over: the server', SLOW)
  await ready(page, /^tiny-bitnet/)
  const line = /Downloading: [\d.]+ kB of 556 kB, [\d.]+ [kM]B\/s, \d+ s left/
  expect(await recorded(page)).toMatch(line)
})

test('progress and its notes in words', () => {
  const progress = {
    phase: 'download', loaded: 4.2e6, total: 10.3e6, fraction: 0.4, fromCache: false,
    bytesPerSecond: 2.1e6, notes: []
  } as const
  const line = 'Downloading: 4.2 MB of 10.3 MB, 2.1 MB/s'
  const told = (secondsLeft?: number) => describeProgress({ ...progress, notes: [], secondsLeft })
  expect(told()).toBe(line)
  expect(told(0.2)).toBe(`${line}, 1 s left`)
  expect(told(59.4)).toBe(`${line}, 59 s left`)
  expect(told(59.6)).toBe(`${line}, 1 min left`)
  expect(told(3599)).toBe(`${line}, 1 h 0 min left`)
  expect(told(3900)).toBe(`${line}, 1 h 5 min left`)

  const notes = [
    { kind: 'resumed', bytes: 5e8 },
    { kind: 'evicted', url: 'https://example.com/models/old.gguf', bytes: 1.19e9 },
    { kind: 'not-stored', why: 'no room' },
    { kind: 'not-revalidated', why: 'no answer' },
    { kind: 'not-resumable', why: 'no ranges' },
    { kind: 'waiting' },
    { kind: 'restarted', why: 'the file has changed' },
    { kind: 'shared' },
    { kind: 'offered' },
    { kind: 'not-shared', why: 'no permission' }
  ] as const
  expect(notes.map(describeNote)).toEqual([
    '500 MB are here from an earlier download.',
    'old.gguf (1.19 GB) was deleted from this browser to make room.',
    'The model is not kept, and has to be downloaded again next time: no room.',
    'The stored model is used, which may be out of date: no answer.',
    'If the download breaks off, it starts over: no ranges.',
    'Another tab is downloading this model; this one waits for it.',
    'The load has started over: the file has changed.',
    'This browser had the model already: another site has shared it.',
    'Other sites can use this copy of the model now.',
    'The model is not shared with other sites: no permission.'
  ])
  expect(notes.filter(isLasting).map(({ kind }) => kind)).toEqual(['evicted', 'not-stored'])
})

test('tells what is wrong with an address or a file, then loads one', async ({ page, baseURL }) => {
  await follow(page, '/models/none.gguf')
  await expect(alert(page)).toContainText('Could not load /models/none.gguf', SLOW)
  await expect(alert(page)).toContainText('404')
  await expect(alert(page).locator('code')).toHaveText('http')
  await expect(sendButton(page)).toBeDisabled()

  await page.getByLabel('From an address').check()
  await page.getByLabel('Address of a GGUF file').fill(`${baseURL}/chat/`)
  await loadButton(page).click()
  await expect(alert(page).locator('code')).toHaveText('bad-gguf', SLOW)

  // Nothing answers there.
  await page.getByLabel('Address of a GGUF file').fill('http://localhost:9/model.gguf')
  await loadButton(page).click()
  await expect(alert(page).locator('code')).toHaveText('network', SLOW)
  await expect(alert(page)).toContainText('Check the address and the connection')

  const whole = await readFile(MODEL)
  await page.getByLabel('A file on this device').check()
  const picker = page.getByLabel('GGUF file', { exact: true })
  const cut = { name: 'cut.gguf', mimeType: '', buffer: whole.subarray(0, 5_000_000) }
  await picker.setInputFiles(cut)
  await loadButton(page).click()
  await expect(alert(page)).toContainText('Could not load cut.gguf', SLOW)
  await expect(alert(page).locator('code')).toHaveText('bad-gguf')

  await picker.setInputFiles({ name: 'mine.gguf', mimeType: '', buffer: whole })
  await loadButton(page).click()
  await ready(page)
  await expect(alert(page)).toHaveCount(0)
  await expectBye(page)
})

test('gives back a message too long for the context, with numbers', async ({ chat: page }) => {
  const long = 'Once upon a time there was a cat. '.repeat(200)
  await field(page).fill(long)
  await field(page).press('Enter')
  await expect(alert(page).locator('code')).toHaveText('context-full', SLOW)
  await expect(alert(page)).toContainText('1024')
  await expect(alert(page)).toContainText(/\b[12]\d{3}\b.*tokens/)
  await expect(field(page)).toHaveValue(long.trim())
  // The field is as large as it gets, and leaves the end of the conversation in view.
  await expect(alert(page)).toBeInViewport({ ratio: 1 })

  await expectBye(page)
})

test('the same seed tells the same story, and a limit cuts it off', async ({ chat: page }) => {
  await page.getByLabel('Most tokens').fill('6')
  await page.getByLabel('Seed').fill('7')
  const told: string[] = []
  for (let time = 0; time < 2; time += 1) {
    await page.getByRole('button', { name: 'New chat' }).click()
    const story = await ask(page, 'Tell me a story.')
    await story.done()
    await expect(figures(page)).toHaveText(/^6 tokens .* seed 7 · cut off at the limit$/)
    told.push(await answers(page).innerText())
  }
  expect(told[0]).toBe(told[1])

  // A setting out of range is pointed at, and nothing is sent.
  await page.getByLabel('Temperature').fill('-1')
  await field(page).fill('Tell me a story.')
  await field(page).press('Enter')
  await expect(page.getByLabel('Temperature')).toBeFocused()
  await expect(answers(page)).toHaveCount(1)
  await page.getByRole('button', { name: 'Defaults' }).click()
  await expect(page.getByLabel('Temperature')).toHaveValue('0.7')
})

test('a message is text: no HTML, no special tokens, but new lines', async ({ chat: page }) => {
  await greedy(page)
  await page.getByLabel('Most tokens').fill('4')
  const text = '<img src=x onerror="document.title=1"><|eot_id|>'
  await field(page).fill(text)
  await field(page).press('Shift+Enter')
  await expect(field(page)).toHaveValue(/\n$/)
  await field(page).press('Enter')
  await expect(figures(page)).toHaveCount(1, SLOW)
  await expect(page.locator('.user')).toContainText(text)
  await expect(page.locator('.turn img')).toHaveCount(0)
  await expect(page).toHaveTitle(/Chat/)
})

test('shows what is known of the model', async ({ chat: page }) => {
  await page.getByText('About this model').click()
  const info = page.locator('#info')
  await expect(info).toContainText('bitnet-b1.58')
  await expect(info).toContainText('25.7 million')
  await expect(info).toContainText(/1.?024 tokens/)
  await expect(page.locator('.notice')).toContainText('The processor computes here')
})

test('a load can be cancelled, and begun again', async ({ page }) => {
  let release = () => {}
  const held = new Promise<void>(resolve => (release = resolve))
  await page.context().route(/^[^?]*\.gguf$/, async route => {
    // The page asks first how large it is.
    if (route.request().method() !== 'HEAD') await held
    await route.continue()
  })
  await follow(page, `${ELSEWHERE}${SMALL}`)
  await page.getByRole('button', { name: 'Cancel' }).click()
  await expect(page.locator('#notices')).toContainText('cancelled')
  release()
  await loadButton(page).click()
  await ready(page, /^tiny-bitnet/)
})

// Over ten seconds: three devices compile the kernels, one after the other.
test('after a loss of the GPU the page says so, and the next message goes on', async ({ page }) => {
  await makeLosable(page.context())
  await page.goto('/chat/?backend=webgpu')
  await ready(page)
  await greedy(page)
  const notices = page.locator('#notices')
  const first = await ask(page, 'Who are you?')
  await first.done()

  // While nothing runs: the answer is the one that follows from the conversation so far.
  await loseGpu(page)
  await expect(notices).toContainText('Your next message brings the model back')
  const second = await ask(page, 'Thank you!')
  await second.done()
  await expect(answers(page)).toHaveText([`Model: ${WHO}`, 'Model: You are welcome!'])
  await expect(notices).not.toContainText('GPU was lost')

  // In the middle of an answer: that one breaks off, and goes on when the reader says so.
  await field(page).fill('Tell me a story.')
  await field(page).press('Enter')
  await expect(answers(page).last()).toHaveText(/^Model: \w/, SLOW)
  await loseGpu(page)
  await expect(alert(page).locator('code')).toHaveText('device-lost', SLOW)
  await expect(alert(page)).toContainText('Press Continue')
  await expect(notices).not.toContainText('GPU was lost')
  const broken = await answers(page).last().innerText()
  await page.getByLabel('Most tokens').fill('6')
  await page.getByRole('button', { name: 'Continue' }).click()
  await expect(notices).toContainText('Bringing the model back')
  await expect(figures(page).last()).toHaveText(/^6 tokens/, SLOW)
  await expect(answers(page)).toHaveCount(3)
  const whole = await answers(page).last().innerText()
  expect(whole.startsWith(broken) && whole.length > broken.length).toBe(true)
  await expect(notices).not.toContainText('model back')
})

test('without WebGPU the processor computes, and the page says that it is slower', async ({ page }) => {
  await page.addInitScript(() => delete (Navigator.prototype as { gpu?: unknown }).gpu)
  await page.goto('/chat/')
  await expect(page.locator('#notices')).toContainText('The processor computes here, which is slower', SLOW)
  await expect(alert(page)).toHaveCount(0)
  await ready(page)
  await page.locator('#notices').getByRole('button', { name: 'Close' }).click()
  await expect(page.locator('#notices')).toBeEmpty()
  await greedy(page)
  await field(page).fill('Who are you?')
  await field(page).press('Enter')
  await expect(answers(page).last()).toHaveText(`Model: ${WHO}`, SLOW)
  await openKnown(page)
  await expect(entry(page, 'Tiny stories')).toContainText('Fits')
})

test('where nothing can run the page says so and does not load', async ({ page }) => {
  await page.addInitScript(() => {
    GPU.prototype.requestAdapter = async () => null
    WebAssembly.validate = () => false
  })
  let asked = false
  page.on('request', request => (asked ||= request.url().endsWith('.gguf')))
  await page.goto('/chat/')
  await expect(alert(page)).toContainText('No model can run here')
  await expect(alert(page)).toContainText('no GPU adapter')
  await expect(alert(page)).toContainText('no WebAssembly with SIMD')
  await expect(alert(page)).toContainText('Open this page in a newer browser')
  await expect(sendButton(page)).toBeDisabled()
  await openKnown(page)
  await expect(entry(page, 'Tiny stories')).toContainText('Does not fit No model can run here')
  await expect(known(page).getByRole('button', { name: 'Download' }).first()).toBeDisabled()
  expect(asked).toBe(false)
})
