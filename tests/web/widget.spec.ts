// The widget by name, from a page's own origin and from another one, under the policies that the
// documentation names. Its look and its texts are tested in tldr.spec.ts, which uses it in the
// demo.
import type { Page } from '@playwright/test'
import { expect, GOLDEN_MODEL, server, test as base } from './harness'
import { ELSEWHERE } from './ports'

/** A page that notes what it throws, what its policy forbids, and what its widgets tell. */
const test = base.extend({
  page: async ({ page }, use) => {
    const thrown: string[] = []
    page.on('pageerror', error => thrown.push(String(error)))
    await page.addInitScript(() => {
      const told: string[] = []
      Object.assign(window, { told })
      document.addEventListener('securitypolicyviolation', ({ blockedURI, violatedDirective }) =>
        told.push(`${violatedDirective} forbids ${blockedURI}`))
      for (const type of ['tldr-start', 'tldr-consent', 'tldr-done', 'tldr-stop', 'tldr-error']) {
        document.addEventListener(type, event => {
          const { id } = event.target as HTMLElement
          const { bytes, code } = (event as CustomEvent<{ bytes?: number, code?: string } | null>).detail ?? {}
          told.push([id, type, bytes, code].filter(part => part !== undefined).join(' '))
        })
      }
    })
    await use(page)
    expect(thrown, 'uncaught errors in the page').toEqual([])
  }
})

/** The events since the last call. */
const told = (page: Page) => page.evaluate(() => (window as unknown as { told: string[] }).told.splice(0))

/** Opens the page with two widgets, and adds the script that makes them work. */
const visit = async (page: Page, address: string, script: string) => {
  await page.goto(address)
  await page.evaluate(async address => {
    const script = document.createElement('script')
    // The page's policy wants no plain text here.
    const { trustedTypes } = window as unknown as { trustedTypes: { createPolicy(name: string, rules: object): { createScriptURL(url: string): string } } }
    const src = trustedTypes.createPolicy('page', { createScriptURL: (url: string) => url }).createScriptURL(address)
    Object.assign(script, { type: 'module', src })
    document.head.append(script)
    await customElements.whenDefined('tldr-widget')
  }, script)
}

const click = (page: Page, id: string, name: string) => page.locator(`#${id}`).getByRole('button', { name, exact: true }).click()
const consent = (page: Page, id: string) => page.locator(`#${id} #question`)
const written = (page: Page, id: string) =>
  expect(page.locator(`#${id} #note`)).toHaveText(/tokens\/s/, { timeout: 60_000 })

test('asks before it downloads; all widgets of a page share one model; a strict policy', async ({ page }) => {
  await visit(page, '/as/strict/tests/web/widget.html', '/as/strict/pkg/widget.js')
  const before = await server(page, 'count')
  await click(page, 'first', 'Sum it up')
  // The size comes of a request for the header alone.
  await expect(consent(page, 'first')).toContainText('It has 252 kB.')
  await click(page, 'first', 'Not now')
  expect(await told(page)).toEqual(['first tldr-start', 'first tldr-consent 251616', 'first tldr-stop'])

  // Both ask; one answer is enough for the page.
  await click(page, 'first', 'Sum it up')
  await click(page, 'second', 'Sum it up')
  await expect(consent(page, 'first')).toBeVisible()
  await expect(consent(page, 'second')).toBeVisible()
  expect(await server(page, 'count')).toBeGreaterThan(before)
  const asked = await server(page, 'count')
  await click(page, 'second', 'Download')
  await written(page, 'first')
  await written(page, 'second')
  await expect(consent(page, 'first')).toBeHidden()
  expect(page.workers().length).toBe(1)
  expect(await server(page, 'count')).toBe(asked + 1)
  const said = await told(page)
  expect(said.filter(text => text.endsWith('tldr-done')).sort()).toEqual(['first tldr-done', 'second tldr-done'])
  expect(said.filter(text => text.includes('forbids'))).toEqual([])

  // The model goes when the last of them has left.
  await page.evaluate(() => document.querySelector('#first')!.remove())
  expect(page.workers().length).toBe(1)
  await page.evaluate(() => document.querySelector('#second')!.remove())
  await expect.poll(() => page.workers().length).toBe(0)

  // A stored model needs no question.
  await visit(page, '/as/strict/tests/web/widget.html', '/as/strict/pkg/widget.js')
  await click(page, 'first', 'Sum it up')
  await written(page, 'first')
  expect(await told(page)).toEqual(['first tldr-start', 'first tldr-done'])
})

test('two copies of the package under one policy', async ({ page }) => {
  await page.goto('/as/copies/tests/web/widget.html')
  const found = await page.evaluate(async url => {
    const texts: string[] = []
    for (const address of ['/as/copies/pkg/index.js', '/pkg/index.js']) {
      const { BitNet } = await import(address)
      const model = await BitNet.load(url, { backend: 'cpu' })
      texts.push(await model.generate('Who are you?', { maxTokens: 3 }).text())
      await model.dispose()
    }
    return texts
  }, GOLDEN_MODEL)
  expect(found).toEqual(['I am a', 'I am a'])
})

test('the demos under a strict policy', async ({ page }) => {
  await page.goto('/as/strict/dist/tldr/index.html')
  await page.evaluate(url => document.querySelector('tldr-widget')!.setAttribute('model', url), GOLDEN_MODEL)
  const widget = page.locator('tldr-widget')
  await widget.getByRole('button', { name: 'Sum it up' }).click()
  await expect(widget.locator('#note')).toHaveText(/tokens\/s/, { timeout: 60_000 })
  // It registers its service worker. This server has no folders, so that one finds no pages to keep.
  await expect(page.locator('#offline-state')).not.toContainText('could not')

  await page.goto(`/as/strict/dist/chat/index.html?model=${GOLDEN_MODEL}`)
  await page.getByLabel(/Greedy/).check()
  await page.locator('#prompt').fill('Who are you?')
  await page.getByRole('button', { name: 'Send' }).click({ timeout: 60_000 })
  await expect(page.locator('#transcript .assistant')).toContainText('I am a very small model.')

  await page.goto(`/as/strict/dist/form/index.html?model=${GOLDEN_MODEL}`)
  await page.getByLabel('Text', { exact: true }).fill('Who are you?')
  await page.getByLabel('JSON schema').fill('{"enum": ["me", "you"]}')
  await page.getByRole('button', { name: 'Fill the form' }).click({ timeout: 60_000 })
  await expect(page.locator('#outcome')).toHaveText('The record is valid by the schema.', { timeout: 60_000 })

  await page.goto(`/as/strict/dist/tools/index.html?model=${GOLDEN_MODEL}`)
  for (const name of ['add_item', 'tick_item', 'convert', 'show_time']) await page.getByLabel(name).uncheck()
  await page.getByLabel('Tools to call').selectOption('set_theme')
  await page.getByLabel('Your request').fill('Dark!')
  await page.getByRole('button', { name: 'Ask' }).click({ timeout: 60_000 })
  await expect(page.locator('.call .result')).toContainText('The colours are ', { timeout: 60_000 })
  expect((await told(page)).filter(text => text.includes('forbids'))).toEqual([])
})

test('from another origin, whose worker is made by blob', async ({ page, context }) => {
  await visit(page, '/as/foreign/tests/web/widget.html', `${ELSEWHERE}/pkg/widget.js`)
  await page.locator('#first').evaluate((widget, url) => {
    widget.setAttribute('model', url)
    widget.setAttribute('consent', 'given')
  }, ELSEWHERE + GOLDEN_MODEL)
  await context.route('**/pkg/protocol/worker.js', route => route.abort())
  await click(page, 'first', 'Sum it up')
  await expect(page.locator('#first').getByRole('alert')).toContainText('the worker\'s script could not be loaded')
  expect(await told(page)).toEqual(['first tldr-start', 'first tldr-error network'])
  await context.unroute('**/pkg/protocol/worker.js')
  await click(page, 'first', 'Sum it up')
  await written(page, 'first')
  expect(await told(page)).toEqual(['first tldr-start', 'first tldr-done'])
})

test('when the worker of its model was killed, the next summary loads the model again', async ({ page }) => {
  await page.addInitScript(() => {
    const workers: Worker[] = []
    window.Worker = class extends Worker {
      constructor(url: string | URL, options?: WorkerOptions) {
        super(url, options)
        workers.push(this)
      }
    }
    Object.assign(window, { workers })
  })
  await visit(page, '/tests/web/widget.html', '/pkg/widget.js')
  await page.locator('#first').evaluate(widget => widget.setAttribute('consent', 'given'))
  await click(page, 'first', 'Sum it up')
  await written(page, 'first')
  await page.evaluate(() => (window as unknown as { workers: Worker[] }).workers.at(-1)!.terminate())
  await expect.poll(async () => {
    await click(page, 'first', 'Sum it up')
    await expect(page.locator('#first').getByRole('button', { name: 'Sum it up', exact: true })).toBeVisible()
    return told(page)
  }).toContain('first tldr-error internal')
  await click(page, 'first', 'Sum it up')
  await written(page, 'first')
})

test('a stored file with another hash than the page names is no reason to download without a question', async ({ page }) => {
  await visit(page, '/tests/web/widget.html', '/pkg/widget.js')
  const hash = await page.evaluate(async url => {
    const { BitNet } = await import('/pkg/index.js' as string)
    const model = await BitNet.load(url)
    await model.stored
    await model.dispose()
    const bytes = await (await fetch(url)).arrayBuffer()
    const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))
    // The page knows the file that will be at the address.
    document.getElementById('first')!.setAttribute('integrity', `sha256-${btoa('other'.padEnd(32))}`)
    return `sha256-${btoa(String.fromCharCode(...hash))}`
  }, GOLDEN_MODEL)
  const before = await server(page, 'count')
  await click(page, 'first', 'Sum it up')
  await expect(consent(page, 'first')).toContainText('It has 252 kB.')
  // The request for the size.
  expect(await server(page, 'count')).toBe(before + 1)
  await click(page, 'first', 'Not now')
  await page.evaluate(hash => document.getElementById('first')!.setAttribute('integrity', hash), hash)
  await click(page, 'first', 'Sum it up')
  await written(page, 'first')
  expect(await server(page, 'count')).toBe(before + 1)
  expect(await told(page)).toEqual([
    'first tldr-start', 'first tldr-consent 251616', 'first tldr-stop', 'first tldr-start', 'first tldr-done'
  ])
})

test('an element that names no model takes one revision, and only the file with its hash', async ({ page, context }) => {
  await visit(page, '/tests/web/widget.html', '/pkg/widget.js')
  await page.locator('#first').evaluate(widget => {
    widget.removeAttribute('model')
    widget.setAttribute('consent', 'given')
  })
  const asked = new Set<string>()
  await context.route('https://huggingface.co/**', route => {
    asked.add(route.request().url())
    return route.fulfill({ path: `.${GOLDEN_MODEL}`, headers: { 'access-control-allow-origin': '*' } })
  })
  await click(page, 'first', 'Sum it up')
  await expect(page.locator('#first').getByRole('alert')).toContainText('integrity')
  expect(await told(page)).toEqual(['first tldr-start', 'first tldr-error integrity'])
  expect([...asked]).toEqual([
    expect.stringMatching(/^https:\/\/huggingface\.co\/microsoft\/bitnet-b1\.58-2B-4T-gguf\/resolve\/[0-9a-f]{40}\/ggml-model-i2_s\.gguf$/)
  ])
})

test('the browser\'s own model where the page prefers it, and the article of the page', async ({ page }) => {
  // A browser whose model is not here yet, and reads 1000 characters.
  await page.addInitScript(() => {
    const read: string[] = []
    const Summarizer = {
      read,
      state: 'downloadable',
      availability: async () => Summarizer.state,
      create: async ({ type, length }: Record<string, string>) => ({
        inputQuota: 1000,
        measureInputUsage: async (text: string) => {
          if (Summarizer.state === 'broken') throw new Error('broken')
          return text.length
        },
        summarizeStreaming: (text: string) => {
          read.push(text)
          return new ReadableStream({
            start(controller) {
              for (const text of ['It ', 'rained: ', `${type}, ${length}.`]) controller.enqueue(text)
              controller.close()
            }
          })
        },
        destroy: () => read.push('destroyed')
      })
    }
    Object.assign(window, { Summarizer })
  })
  await visit(page, '/as/strict/tests/web/widget.html', '/as/strict/pkg/widget.js')
  await page.evaluate(() => {
    for (const widget of document.querySelectorAll('tldr-widget')) widget.setAttribute('prefer', 'browser')
    document.querySelector('#first')!.setAttribute('type', 'headline')
  })
  await click(page, 'first', 'Sum it up')
  await expect(consent(page, 'first')).toContainText('Your browser has a model for this')
  await click(page, 'first', 'Download')
  await expect(page.locator('#first #summary')).toHaveText('It rained: headline, short.')
  const read = await page.evaluate(() => (window as unknown as { Summarizer: { read: string[], state: string } }).Summarizer.read)
  expect(read[0]).toContain('Mia wanted to go')
  expect(read[0]).toContain('the best day of the week')
  expect(read[0]).not.toContain('Subscribe')
  expect(read[1]).toBe('destroyed')

  // One that cannot read is let go of too.
  await page.evaluate(() => { (window as unknown as { Summarizer: { state: string } }).Summarizer.state = 'broken' })
  await click(page, 'first', 'Sum it up')
  await click(page, 'first', 'Download')
  await expect(page.locator('#first').getByRole('alert')).toContainText('broken')
  expect(await page.evaluate(() => (window as unknown as { Summarizer: { read: string[] } }).Summarizer.read.slice(2))).toEqual(['destroyed'])

  // One that gives no answer is stopped all the same.
  await page.evaluate(() => {
    const { Summarizer } = window as unknown as { Summarizer: { availability(): Promise<string> } }
    const { availability } = Summarizer
    Summarizer.availability = () => {
      Summarizer.availability = availability
      return new Promise(() => {})
    }
  })
  await click(page, 'first', 'Sum it up')
  await click(page, 'first', 'Stop')
  await expect(page.locator('#first').getByRole('button', { name: 'Sum it up', exact: true })).toBeVisible()

  // A text too long for it, and a browser that cannot: our model asks.
  for (const state of ['available', 'unavailable']) {
    await page.evaluate(state => {
      const { Summarizer } = window as unknown as { Summarizer: { state: string } }
      Summarizer.state = state
      if (state === 'available') document.querySelector('#day')!.append(' They read on.'.repeat(100))
    }, state)
    await click(page, 'second', 'Sum it up')
    await expect(consent(page, 'second')).toContainText('that has to be downloaded')
    await click(page, 'second', 'Not now')
  }
  expect((await told(page)).filter(text => text.includes('forbids'))).toEqual([])
})

test('labels in the language of the page, of the element, and of slots; key points as a list; copy', async ({ page, context }) => {
  // A browser that writes points, whose marks come apart.
  await page.addInitScript(() => {
    const texts = ['The key points:\n', '- It rai', 'ned.\n-', ' They built <b>', 'forts</b>.\n2. ', 'They read.']
    const Summarizer = {
      availability: async () => 'available',
      create: async () => ({
        inputQuota: 100000,
        measureInputUsage: async () => 1,
        summarizeStreaming: () => new ReadableStream({
          start(controller) {
            for (const text of texts) controller.enqueue(text)
            controller.close()
          }
        }),
        destroy: () => {}
      })
    }
    Object.assign(window, { Summarizer })
  })
  await visit(page, '/as/strict/tests/web/widget.html', '/as/strict/pkg/widget.js')
  const first = page.locator('#first')
  await first.evaluate(widget => {
    document.documentElement.lang = 'de-AT'
    widget.setAttribute('prefer', 'browser')
    widget.setAttribute('type', 'key-points')
    widget.setAttribute('lang', 'fr')
    document.querySelector('#second')!.setAttribute('lang', 'de-AT')
  })
  await expect(first.getByRole('button', { name: 'Résumer', exact: true })).toBeVisible()
  await expect(page.locator('#second').getByRole('button', { name: 'Zusammenfassen', exact: true })).toBeVisible()
  // A language that it does not know is English, and says so; what the page names itself stays.
  await first.evaluate(widget => {
    widget.setAttribute('lang', 'fi')
    const label = document.createElement('span')
    Object.assign(label, { slot: 'sum-up', textContent: 'Tiivistä' })
    widget.append(label)
  })
  await expect(first.getByText('Sum up your own text')).toHaveAttribute('lang', 'en')

  await click(page, 'first', 'Tiivistä')
  await expect(first.locator('#note')).toHaveText('By the browser’s own model')
  await expect(first.getByRole('listitem')).toHaveText(['It rained.', 'They built <b>forts</b>.', 'They read.'])
  await expect(first.locator('#summary p')).toHaveText('The key points:')
  await context.grantPermissions(['clipboard-read', 'clipboard-write'])
  await click(page, 'first', 'Copy')
  await expect(first.getByText('Copied.')).toBeVisible()
  expect(await page.evaluate(() => navigator.clipboard.readText()))
    .toBe('The key points:\n- It rained.\n- They built <b>forts</b>.\n2. They read.')

  // Where the page may not copy, the text is selected.
  await page.evaluate(() => { navigator.clipboard.writeText = () => Promise.reject(new Error('no')) })
  await click(page, 'first', 'Copy')
  await expect(first.getByText('The browser does not let this page copy.')).toBeVisible()

  // Another summary is no list any more.
  await first.evaluate(widget => widget.removeAttribute('type'))
  await click(page, 'first', 'Tiivistä')
  await expect(first.locator('#summary')).toContainText('- It rained.')
  await expect(first.getByRole('listitem')).toHaveCount(0)
  expect((await told(page)).filter(text => text.includes('forbids'))).toEqual([])
})

test('a widget that leaves before its text is known joins no model; one that is moved goes on', async ({ page }) => {
  await visit(page, '/as/strict/tests/web/widget.html', '/as/strict/pkg/widget.js')
  const isJoined = await page.evaluate(async () => {
    const { SharedModel } = await import('/as/strict/pkg/widget/model.js' as string)
    const widget = document.getElementById('second') as HTMLElement & { summarize(): Promise<void> }
    widget.setAttribute('consent', 'given')
    const summary = widget.summarize()
    widget.remove()
    await summary
    // A model that the widget has joined is one that may be downloaded.
    const user = { onProgress() {}, onLost() {} }
    const model = SharedModel.join(new URL('/tests/data/golden/golden.gguf', location.href).href, user)
    model.leave(user)
    return model.isAllowed
  })
  expect(isJoined).toBe(false)
  expect(await told(page)).toEqual(['second tldr-start'])

  await click(page, 'first', 'Sum it up')
  await expect(consent(page, 'first')).toContainText('It has 252 kB.')
  await page.evaluate(() => document.body.append(document.getElementById('first')!))
  await expect(consent(page, 'first')).toContainText('It has 252 kB.')
  await expect(page.locator('#first').getByRole('button', { name: 'Stop' })).toBeVisible()
  expect(await told(page)).toEqual(['first tldr-start', 'first tldr-consent 251616'])

  // The same while its summary is written.
  await page.evaluate(() => {
    const widget = document.getElementById('first')!
    widget.addEventListener('tldr-text', () => document.body.prepend(widget), { once: true })
  })
  await click(page, 'first', 'Download')
  await written(page, 'first')
  expect(await page.evaluate(() => document.body.firstElementChild!.id)).toBe('first')
  expect(await told(page)).toEqual(['first tldr-done'])
})
