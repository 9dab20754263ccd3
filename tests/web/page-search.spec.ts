// The demo that searches by meaning, driven as a person would. Its embedding model has random weights, and the bundled one
// is a toy: these tests are about what is read, kept and shown.
import type { Page } from '@playwright/test'
import { sectionsOf } from '../../www/build/sections.ts'
import { expect, expectAccessible, NARROW, SLOW, test, WIDE } from './demos.ts'
import { ELSEWHERE } from './ports.ts'

const readButton = (page: Page) => page.getByRole('button', { name: 'Read the documentation' })
const sources = (page: Page) => page.locator('#sources')
const results = (page: Page) => page.locator('#results li')

/** Opens the page with a small embedding model from another site. */
async function visit(page: Page) {
  await page.goto(`/search/?model=${ELSEWHERE}/tests/data/embed/qwen3-embd-q2_0.gguf&backend=cpu`)
  await page.getByRole('button', { name: 'Download' }).click()
  await expect(readButton(page)).toBeEnabled(SLOW)
}

async function search(page: Page, query: string, scope = 'Everything') {
  await page.getByLabel('What do you want to know?').fill(query)
  await page.getByLabel('Where to search').selectOption(scope)
  await page.getByRole('button', { name: 'Search', exact: true }).click()
  await expect(page.locator('#figures')).toHaveText(/^(The best of|Nothing)/, SLOW)
}

const NOTES = { name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('The ferry leaves at nine. In winter it leaves at ten.') }
const PICTURE = { name: 'picture.png', mimeType: 'image/png', buffer: Buffer.from([137, 80, 78, 71, 0, 1, 2]) }

// Over ten seconds: all of the documentation is embedded.
test('the documentation and own files are read and searched, also offline', { tag: '@quick' }, async ({ page, context }) => {
  await page.setViewportSize(NARROW)
  await visit(page)
  await expect(sources(page)).toHaveText('The documentation has not been read yet.')
  await expect(page.locator('#toy')).toBeHidden()
  await readButton(page).click()
  await expect(page.locator('#reading')).toBeVisible()
  await expect(readButton(page)).toBeEnabled(SLOW)
  await expect(sources(page)).toHaveText(/^The documentation: \d{2,} sections$/)
  const sections = Number(/\d+/.exec((await sources(page).textContent())!)![0])

  await page.getByLabel('Add your own files').setInputFiles([NOTES, PICTURE])
  await expect(page.locator('#notices')).toContainText('Not read, as they are no texts: picture.png.', SLOW)
  await search(page, 'When does the ferry leave?', 'Your files')
  await expect(results(page)).toHaveCount(1)
  await expect(results(page).locator('h3')).toHaveText('notes.txt')
  await expect(results(page).locator('p')).toHaveText('The ferry leaves at nine. In winter it leaves at ten.')
  await search(page, 'How do I search by meaning?', 'The documentation')
  await expect(results(page)).toHaveCount(10)
  const found = await results(page).allTextContents()
  for (const title of await results(page).locator('h3').allTextContents()) expect(title).toMatch(/^(README|[A-Z-]+)(: .+)?$/)
  await expectAccessible(page)

  await expect(page.locator('#offline-state')).toHaveText('This page is kept and opens offline.', SLOW)
  await page.setViewportSize(WIDE)
  await context.setOffline(true)
  await page.reload()
  await expect(sources(page)).toContainText(`The documentation: ${sections} sections`, SLOW)
  await search(page, 'How do I search by meaning?', 'The documentation')
  expect(await results(page).allTextContents()).toEqual(found)
  // All that is there already is not read again.
  await readButton(page).click()
  await expect(page.locator('#read-text')).toHaveText(/, 0 new passages$/, SLOW)

  await page.getByRole('button', { name: 'Forget notes.txt' }).click()
  await search(page, 'When does the ferry leave?', 'Your files')
  await expect(page.locator('#figures')).toHaveText('Nothing was found: no text here has been read.')
  await page.getByRole('button', { name: 'Forget everything' }).click()
  await expect(sources(page)).toHaveText('The documentation has not been read yet.')
})

test('a damaged index is named, and forgotten', async ({ page }) => {
  await visit(page)
  await page.getByLabel('Add your own files').setInputFiles([NOTES])
  await expect(sources(page)).toContainText('notes.txt', SLOW)
  await page.evaluate(async () => {
    const name = (await indexedDB.databases()).map(({ name }) => name!).find(name => name.startsWith('tritloom-search:'))!
    await new Promise<void>(resolve => {
      const opening = indexedDB.open(name)
      opening.onsuccess = () => {
        const transaction = opening.result.transaction('blocks', 'readwrite')
        transaction.objectStore('blocks').clear()
        transaction.oncomplete = () => {
          opening.result.close()
          resolve()
        }
      }
    })
  })
  await page.reload()
  await expect(page.getByRole('alert').locator('code')).toHaveText('index-damaged', SLOW)
  await expect(readButton(page)).toBeDisabled()
  await page.getByRole('button', { name: 'Forget everything' }).click()
  await expect(readButton(page)).toBeEnabled(SLOW)
  await expect(page.getByRole('alert')).toHaveCount(0)
})

test('the bundled model searches too, and says that it was not made for it', async ({ page }) => {
  await page.goto('/search/?backend=cpu')
  await expect(readButton(page)).toBeEnabled(SLOW)
  await expect(page.locator('#toy')).toBeVisible()
  await search(page, 'anything')
  await expect(page.locator('#figures')).toHaveText('Nothing was found: no text here has been read.')
  const cat = { ...NOTES, name: 'cat.txt', buffer: Buffer.from('The cat sleeps on the warm roof.') }
  await page.getByLabel('Add your own files').setInputFiles([NOTES, cat])
  await expect(sources(page)).toContainText('cat.txt', SLOW)
  await search(page, 'A cat sleeps on a roof.')
  await expect(results(page).first()).toContainText('cat.txt')
})

test('where the browser refuses storage, the page says what to do', async ({ page }) => {
  await page.addInitScript(() => {
    IDBFactory.prototype.open = () => { throw new DOMException('refused', 'SecurityError') }
  })
  await page.goto('/search/?backend=cpu')
  await expect(page.getByRole('alert').locator('code')).toHaveText('storage', SLOW)
  await expect(page.getByRole('alert')).toContainText('Let the browser keep data of this site')
  await expect(readButton(page)).toBeDisabled()
})

test('sections of Markdown are plain texts', () => {
  const markdown = [
    'Before *all*.', '', '# First', 'One line', 'and [its](a.md) next.', '', '| a | b |', '|---|---|', '| `c` | d |', '',
    '```js', '# no heading', '```', '    npm start', '## Empty', '', '### **Last**', '- An item.'
  ].join('\n')
  expect(sectionsOf('DOC', markdown)).toEqual([
    { id: 'DOC#0', document: 'DOC', heading: 'DOC', text: 'Before all.' },
    { id: 'DOC#1', document: 'DOC', heading: 'First', text: 'One line and its next.\n\na: b\n\nc: d' },
    { id: 'DOC#2', document: 'DOC', heading: 'Last', text: 'An item.' }
  ])
})
