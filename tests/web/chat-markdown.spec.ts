// Long answers of the chat demo: the work of a frame, and no shift of what is on the page.
import { readFileSync } from 'node:fs'
import { giveBundle } from './bundled.ts'
import { expect, test } from './demos.ts'

const STYLES = ['www/shared/theme.css', 'www/chat/message.css'].map(path => readFileSync(path, 'utf8')).join('\n')

/** Some 10,000 tokens with all kinds of blocks, among them a long one of each. */
const SECTION = '## A part\n\nSome **words** that make a paragraph, and `code` in it.\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```js\nx(1)\n```\n\n'
const LONG = ['word '.repeat(1000), '- an item\n'.repeat(300), `\n\n\`\`\`\n${'code()\n'.repeat(500)}\`\`\`\n\n`].join('\n\n')
const TEXT = SECTION.repeat(120) + LONG + SECTION.repeat(60)

declare global {
  interface Window {
    markdown: typeof import('../../www/chat/markdown/view.ts')
  }
}

test('an answer of 10,000 tokens takes bounded work in a frame, and shifts nothing', async ({ page }) => {
  await page.goto('/')
  await page.setContent(`<style>${STYLES} #log { height: 500px; overflow-y: auto; scrollbar-gutter: stable }</style><div id="log"><p>Before</p><div class="assistant streaming" id="box"></div></div>`)
  await giveBundle(page, 'markdown', 'www/chat/markdown/view.ts')
  const found = await page.evaluate(async text => {
    const [log, box] = ['log', 'box'].map(id => document.getElementById(id)!) as [HTMLElement, HTMLElement]
    /** Nodes that each frame has added and removed. */
    const changes: number[] = []
    const count = (node: Node): number => 1 + [...node.childNodes].reduce((sum, child) => sum + count(child), 0)
    const observer = new MutationObserver(records => {
      changes.push(records.reduce((sum, { addedNodes, removedNodes }) => sum + [...addedNodes, ...removedNodes].reduce((nodes, node) => nodes + count(node), 0), 0))
    })
    observer.observe(box, { childList: true, subtree: true })
    let shift = 0
    new PerformanceObserver(entries => {
      for (const entry of entries.getEntries()) shift += (entry as unknown as { value: number }).value
    }).observe({ type: 'layout-shift', buffered: true })
    let blocks = 0
    const view = window.markdown.createMarkdown(box, () => (blocks += 1), () => (log.scrollTop = log.scrollHeight))
    const frame = () => new Promise(requestAnimationFrame)
    for (let at = 0; at < text.length; at += 200) {
      view.append(text.slice(at, at + 200))
      await frame()
    }
    view.end()
    await frame()
    await frame()
    return { most: Math.max(...changes), frames: changes.length, all: changes.reduce((sum, now) => sum + now, 0), shift, blocks, nodes: count(box), length: box.innerText.length }
  }, TEXT)
  expect(found.frames).toBeGreaterThan(150)
  expect(found.most).toBeLessThan(150)
  // Each node is made once, and again only while it is open.
  expect(found.all).toBeLessThan(4 * found.nodes)
  expect(found.blocks).toBeGreaterThan(700)
  expect(found.length).toBeGreaterThan(TEXT.length / 2)
  expect(found.shift).toBe(0)
})

test('hostile answers run nothing and fetch nothing', async ({ page }) => {
  const fetched: string[] = []
  await page.goto('/')
  await page.setContent('<div id="box"></div>')
  await giveBundle(page, 'markdown', 'www/chat/markdown/view.ts')
  page.on('request', request => fetched.push(request.url()))
  const hostile = [
    '<img src=x onerror="window.ran=1">', '<svg onload="window.ran=1">', '<script>window.ran=1</script>', '<iframe src="javascript:window.ran=1">',
    '![a](https://example.com/a.png)', '![a](x"onerror="window.ran=1)', '[a](javascript:window.ran=1)', '[a](JaVaScRiPt&#58;window.ran=1)',
    '<https://example.com/"onmouseover="window.ran=1>', '```"><img src=x onerror=window.ran=1>\n<img src=x onerror=window.ran=1>\n```',
    '| <img src=x onerror=window.ran=1> |\n|---|\n| <style>@import "https://example.com"</style> |', '<a href="javascript:window.ran=1">b</a>',
    '<form action="https://example.com"><button>c</button></form>', '`<img src=x onerror=window.ran=1>`', '<math><mtext><img src=x onerror=window.ran=1>'
  ]
  const found = await page.evaluate(async texts => {
    const box = document.getElementById('box')!
    for (const text of texts) window.markdown.showMarkdown(box, text)
    for (const link of box.querySelectorAll('a')) link.removeAttribute('target')
    const attributes = new Set([...box.querySelectorAll('*')].flatMap(element => element.getAttributeNames()))
    await new Promise(resolve => setTimeout(resolve, 200))
    const hrefs = [...box.querySelectorAll('a')].map(({ href }) => new URL(href).protocol)
    return { ran: 'ran' in window, tags: [...new Set([...box.querySelectorAll('*')].map(({ localName }) => localName))], attributes: [...attributes], hrefs }
  }, hostile)
  expect(found.ran).toBe(false)
  expect(fetched).toEqual([])
  expect(found.tags.filter(tag => /img|svg|script|iframe|style|form|math|input/.test(tag))).toEqual([])
  expect(found.attributes.filter(name => !['class', 'href', 'rel', 'tabindex', 'type'].includes(name))).toEqual([])
  expect(new Set(found.hrefs)).toEqual(new Set(['https:']))
})
