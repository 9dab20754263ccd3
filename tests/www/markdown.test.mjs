// Markdown that grows: the same as the whole text, whatever its steps, and no more work for a long text.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { load } from './load.mjs'

const { Blocks } = await load('chat/markdown/blocks.ts')
const { blocksOf, htmlOf } = await load('chat/markdown/html.ts')

/** Reads a text in steps. Returns all parts, and the open part after each step. */
const grow = (text, step) => {
  const blocks = new Blocks()
  const [done, opened] = [[], []]
  for (let at = 0; at < text.length; at += step) {
    const grown = blocks.add(text.slice(at, at + step))
    done.push(...grown.done)
    if (grown.open) opened.push(grown.open)
  }
  done.push(...blocks.end())
  return { done, opened }
}

/** The HTML of parts, where one that goes on is in the part before it. */
const joined = parts => {
  const texts = []
  for (const part of parts) {
    if (part.block?.type === 'code') {
      texts.push(`code ${part.block.lang ?? ''}:${part.block.text}`)
    } else if (part.kind !== 'code') {
      const html = htmlOf([part.block]).replace(/\s*\n\s*/g, '')
      const inner = { list: /^<[uo]l[^>]*>|<\/[uo]l>$/g, table: /^.*<tbody>|<\/tbody>.*$/g }[part.kind]
      if (part.isNew || !inner) texts.push(html)
      else texts.push(texts.pop().replace(/(<\/[uo]l>|<\/tbody>.*)$/, end => html.replace(inner, '') + end))
    } else if (part.isNew) {
      texts.push(`code ${part.language}:${part.text}`)
    } else {
      texts.push(texts.pop() + part.text)
    }
  }
  return texts
}

const TEXT = `# Title

Some **bold** and \`code\`
in two lines. 1 < 2 & 3

- one
- two
  - inner
- three

1. a
2. b

| a | b |
|---|---|
| 1 | 2 |
| 3 | *4* |

\`\`\`js
if (a < 2) {

  x(\`\`)
}
\`\`\`
> quote
> more

    indented

~~~
\`\`\`
~~~

---

The end`

const HTML = [
  '<h3 class="depth-1">Title</h3>',
  '<p>Some <strong>bold</strong> and <code>code</code><br>in two lines. 1 &lt; 2 &amp; 3</p>',
  '<ul><li>one</li><li>two<ul><li>inner</li></ul></li><li>three</li></ul>',
  '<ol><li>a</li><li>b</li></ol>',
  '<div class="table" tabindex="0"><table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>1</td><td>2</td></tr><tr><td>3</td><td><em>4</em></td></tr></tbody></table></div>',
  'code js:if (a < 2) {\n\n  x(``)\n}',
  '<blockquote><p>quote<br>more</p></blockquote>',
  'code :indented',
  'code :```',
  '<hr>',
  '<p>The end</p>'
]

test('a text that comes in steps of any size has the same parts', () => {
  for (const step of [1, 2, 3, 5, 8, 13]) assert.deepEqual(joined(grow(TEXT, step).done), HTML, `steps of ${step}`)
  assert.deepEqual(joined(grow(TEXT.replaceAll('\n', '\r\n'), 4).done), HTML)
})

test('a block is never shown as another one because its marks are not whole', () => {
  const kinds = text => new Set(grow(text, 1).opened.map(({ block }) => block.type))
  assert.deepEqual(kinds('A line\n- an item'), new Set(['paragraph', 'list']))
  assert.deepEqual(kinds('A line\n1. an item\n2. one more'), new Set(['paragraph', 'list']))
  assert.deepEqual(kinds('## A heading'), new Set(['heading']))
})

test('a text of any form is split, so that no step reads more than a bound', () => {
  const words = count => 'word '.repeat(count)
  const long = {
    paragraph: words(10_000),
    list: `- ${words(20)}\n`.repeat(500),
    item: `- ${words(10_000)}`,
    table: `| a | b |\n|---|---|\n${`| ${words(5)}| x |\n`.repeat(1500)}`,
    quote: `> ${words(20)}\n`.repeat(500),
    code: `\`\`\`\n${'x = 1\n'.repeat(8000)}`,
    open: '**'.repeat(20_000),
    html: `<pre>\n${words(10_000)}`
  }
  for (const [name, text] of Object.entries(long)) {
    const { done, opened } = grow(text, 50)
    const most = Math.max(0, ...opened.map(({ block }) => block.raw.length))
    assert.ok(most <= 4200, `${name}: ${most} characters are open`)
    const read = done.map(part => (part.kind === 'code' ? part.text : htmlOf([part.block]))).join(' ').replace(/<[^>]*>/g, ' ')
    const count = read.match(/word|x/g)?.length ?? 0
    if (name !== 'open') assert.equal(count, text.match(/word|x/g).length, name)
  }
})

test('HTML in markdown is text, links lead to other sites only by a click, images are links', () => {
  const html = text => htmlOf(blocksOf(text)).trim()
  assert.equal(html('a <b onclick="x()">c</b>'), '<p>a &lt;b onclick=&quot;x()&quot;&gt;c&lt;/b&gt;</p>')
  assert.equal(html('<script>x()</script>'), '<p>&lt;script&gt;x()&lt;/script&gt;</p>')
  assert.equal(html('[a](javascript:x())'), '<p>a</p>')
  assert.equal(html('[a](data:text/html,x)'), '<p>a</p>')
  const to = href => `<a href="${href}" target="_blank" rel="noopener noreferrer">`
  assert.equal(html('[a](https://b.example/"onclick="x)'), `<p>${to('https://b.example/&quot;onclick=&quot;x')}a</a></p>`)
  assert.equal(html('![a](https://b.example/c.png)'), `<p>${to('https://b.example/c.png')}Image: a</a></p>`)
  const code = '<div class="code"><div class="bar"><span>js</span><button type="button" class="copy">Copy</button></div>'
  assert.equal(html('```js x\n<b>\n```'), `${code}<pre tabindex="0"><code>&lt;b&gt;</code></pre></div>`)
  assert.equal(html('```"><img src=x>\n<b>\n```').includes('<img'), false)
})
