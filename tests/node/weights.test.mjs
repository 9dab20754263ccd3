// `tritloom/weights` where there is no browser: files by their paths, what a call tells while it reads, and its limit.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { inRoot } from '../../scripts/paths.mjs'
import { failsWith, run } from './support.mjs'

const ENTRY = createRequire(inRoot('pkg', 'index.js')).resolve('tritloom/weights')
const { MAX_VALUES, openWeights } = await import(ENTRY)
const MODEL = inRoot('tests', 'data', 'models', 'qwen3-q2_0.gguf')
const NAME = 'blk.0.attn_q.weight'

test('a program that has no other entry opens a file by its path, its address, and as a blob', async () => {
  const program = `import { readFileSync } from 'node:fs'
import { openWeights } from ${JSON.stringify(ENTRY)}
const path = ${JSON.stringify(MODEL)}
for (const source of [path, new URL(${JSON.stringify(pathToFileURL(MODEL))}), new Blob([readFileSync(path)])]) {
  const file = await openWeights(source)
  const { counts } = await file.statistics('${NAME}')
  console.log(JSON.stringify([file.bytes, counts.reduce((sum, count) => sum + count)]))
}`
  const { status, stdout, stderr } = await run(process.execPath, ['--input-type=module', '-e', program])
  assert.equal(status, 0, stderr)
  const { length } = readFileSync(MODEL)
  assert.deepEqual(stdout.trim().split('\n').map(line => JSON.parse(line)), Array(3).fill([length, 256 * 512]))
})

test('a file that is not there is named', async () => {
  await assert.rejects(openWeights('none.gguf'), failsWith('io', /none\.gguf/))
})

test('a call tells all of its progress before it ends, and none after an abort', async () => {
  const file = await openWeights(MODEL)
  for (const name of [NAME, 'output_norm.weight']) {
    const shares = []
    await file.statistics(name, { onProgress: share => shares.push(share) })
    assert.equal(shares.at(-1), 1, name)
    assert.equal(shares.filter(share => share === 1).length, 1, name)
  }
  // A blob whose part comes after the abort.
  const stop = new AbortController()
  let isSlow = false
  class Slow extends Blob {
    slice(begin, end) {
      const part = super.slice(begin, end)
      const read = part.arrayBuffer.bind(part)
      part.arrayBuffer = async () => {
        if (isSlow) stop.abort(new Error('enough'))
        return read()
      }
      return part
    }
  }
  const slow = await openWeights(new Slow([readFileSync(MODEL)]))
  isSlow = true
  const shares = []
  await assert.rejects(slow.statistics(NAME, { signal: stop.signal, onProgress: share => shares.push(share) }), /enough/)
  isSlow = false
  // The next call waits until that one has read.
  assert.equal((await slow.rows(NAME, 0, 1)).length, slow.tensors.find(({ name }) => name === NAME).shape[0])
  assert.deepEqual(shares, [])
})

test('rows have no more values than the package says', async () => {
  // A tensor with one row more, whose values are all -0: 128 in a block of 18 bytes, type 41.
  const rows = MAX_VALUES / 128 + 1
  const u32 = n => [...new Uint8Array(Uint32Array.of(n).buffer)]
  const u64 = n => [...u32(n), ...u32(0)]
  const header = [
    ...Buffer.from('GGUF'), ...u32(3), ...u64(1), ...u64(0), ...u64(1), ...Buffer.from('a'),
    ...u32(2), ...u64(128), ...u64(rows), ...u32(41), ...u64(0)
  ]
  const padding = new Uint8Array(-header.length & 31)
  const file = await openWeights(new Blob([Uint8Array.from(header), padding, new Uint8Array(18 * rows)]))
  assert.equal((await file.rows('a', 1, rows)).length, MAX_VALUES)
  await assert.rejects(file.rows('a', 0, rows), failsWith('bad-option', /`rows`/))
})
