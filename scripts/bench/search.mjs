// Times an index of `tritloom/search` in Chromium, with a profile on disk, without a model: the vectors are drawn.
//
//   node scripts/bench/search.mjs [--passages 1000,10000,100000] [--dimensions 1024] [--searches 50] [--json]
//
// `topics`: passages of one of 1000 topics, and queries about one, as texts are. `random`: vectors without any, the hardest
// case, because many are almost as close as the best. CHROMIUM names the browser. It takes pkg/ as it is.
import { mkdtempSync, rmSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { chromium } from '@playwright/test'
import { serve } from './server.mjs'

const { values } = parseArgs({
  options: {
    passages: { type: 'string', default: '1000,10000,100000' },
    dimensions: { type: 'string', default: '1024' },
    searches: { type: 'string', default: '50' },
    json: { type: 'boolean', default: false }
  }
})

const folder = mkdtempSync(join(tmpdir(), 'tritloom-search-'))
const server = await serve('')
const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium'
const context = await chromium.launchPersistentContext(folder, { executablePath, args: ['--no-sandbox'] })
try {
  const page = await context.newPage()
  await page.goto(server.address)
  const rows = []
  for (const kind of ['topics', 'random']) {
    for (const passages of values.passages.split(',').map(Number)) {
      const wish = { kind, passages, dimensions: Number(values.dimensions), searches: Number(values.searches) }
      console.error(`${kind}, ${passages} passages`)
      rows.push({ kind, passages, ...(await page.evaluate(measure, wish)) })
    }
  }
  if (values.json) {
    console.log(JSON.stringify({ cpu: cpus()[0].model, processors: cpus().length, browser: context.browser()?.version(), rows }, null, 2))
  } else console.table(rows)
} finally {
  await context.close()
  server.close()
  rmSync(folder, { recursive: true })
}

/** In the page: fills an index, opens it again and searches. Milliseconds, but for the counts. */
async function measure({ kind, passages, dimensions, searches }) {
  const { createIndex, deleteIndex } = await import('/pkg/search.js')
  let state = 1
  const next = () => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return state / 2 ** 31
  }
  // The sum of three is near enough to a normal distribution.
  const draw = () => Float32Array.from({ length: dimensions }, () => next() + next() + next())
  const topics = kind === 'topics' ? Array.from({ length: 1000 }, draw) : []
  const unit = vector => {
    const length = Math.hypot(...vector)
    return vector.map(value => value / length)
  }
  // The probes by which an index knows its model are always the same.
  const probe = unit(draw())
  let embedding = 0
  const model = {
    info: { name: 'drawn', architecture: 'none', parameters: 0, bytes: 0, contextLength: 8192, pooling: 'mean' },
    countTokens: async () => 1,
    embed: async texts => {
      const start = performance.now()
      const vectors = texts.map(text => {
        if (!/^\d/.test(text)) return probe
        const topic = topics[Number.parseInt(text) % 1000]
        const own = draw()
        return unit(topic ? own.map((value, n) => value + topic[n]) : own)
      })
      embedding += performance.now() - start
      return vectors
    }
  }
  const timed = async job => {
    const start = performance.now()
    const result = await job()
    return [performance.now() - start, result]
  }
  const round = number => Number(number.toPrecision(3))
  const median = numbers => round(numbers.sort((a, b) => a - b)[numbers.length >> 1])

  await deleteIndex('bench')
  const index = await createIndex(model, { name: 'bench' })
  function* texts() {
    for (let n = 0; n < passages; n++) yield { id: String(n), text: `${n} is the number of this text.`, metadata: { n } }
  }
  embedding = 0
  const [adding] = await timed(() => index.addMany(texts()))
  const storing = adding - embedding
  await index.close()

  const [opening, opened] = await timed(() => createIndex(model, { name: 'bench' }))
  const times = { search: [], filtered: [] }
  let read = 0
  const { get } = IDBObjectStore.prototype
  IDBObjectStore.prototype.get = function (key) {
    if (this.name === 'passages') read += 1
    return get.call(this, key)
  }
  for (let n = 0; n < searches; n++) {
    const query = `${n * 7} is asked`
    embedding = 0
    const [all] = await timed(() => opened.search(query))
    times.search.push(all - embedding)
    embedding = 0
    const [half] = await timed(() => opened.search(query, { k: 10, filter: ({ n }) => n % 2 === 0 }))
    times.filtered.push(half - embedding)
  }
  IDBObjectStore.prototype.get = get
  await opened.close()
  await deleteIndex('bench')
  return {
    storePerThousand: round((storing / passages) * 1000), open: round(opening), search: median(times.search),
    filtered: median(times.filtered), vectorsRead: Math.round(read / searches / 2)
  }
}
