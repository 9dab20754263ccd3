// Stored models in a folder of the user's: resumed, verified, and shared by programs that run at once.
import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { inRoot } from '../../scripts/paths.mjs'
import { BitNet, CACHE, failsWith, mounted, noMounts, noted, run, script, server } from './support.mjs'

const { scripted, origin } = await server()
const SIZE = (await (await fetch(`${origin}/spread.gguf`)).arrayBuffer()).byteLength
const sent = async model => (await model.requests()).reduce((sum, { sent }) => sum + sent, 0)
const storedFiles = () => readdirSync(CACHE).filter(name => name.endsWith('.bytes'))

test('stored models are listed by the module that computes, and no other comes', async () => {
  const { platform } = await import(inRoot('pkg', 'platform.js'))
  const { asset } = platform
  const names = []
  platform.asset = name => {
    names.push(name)
    return asset(name)
  }
  assert.deepEqual(await BitNet.cache.list(), [])
  platform.asset = asset
  assert.equal(names.length, 1)
  assert.match(names[0], /^cpu\//)
})

test('a model is stored once, listed, verified and deleted', async () => {
  const { url, requests } = await scripted()
  assert.equal(await BitNet.cache.missing(url), SIZE)
  const first = await noted(url)
  await first.model.dispose()
  assert.equal(first.phases.at(-1), 'stored')
  const asked = (await requests()).length
  const second = await noted(url, { cache: 'only' })
  await second.model.dispose()
  assert.ok(second.phases.includes('cache'))
  assert.deepEqual([second.kinds, (await requests()).length], [[], asked])
  const [entry] = await BitNet.cache.list()
  assert.deepEqual([entry.url, entry.bytes, entry.total, entry.complete], [url, SIZE, SIZE, true])
  assert.deepEqual(await BitNet.cache.verify(url), { whole: true, bytes: SIZE, damagedBytes: 0 })
  const { usage, quota } = await BitNet.cache.estimate()
  assert.ok(usage === SIZE && quota > usage, `${usage} ${quota}`)
  assert.equal(await BitNet.cache.persist(), true)
  assert.equal(await BitNet.cache.missing(url), 0)
  await BitNet.cache.delete(url)
  assert.deepEqual([await BitNet.cache.list(), storedFiles()], [[], []])
  await assert.rejects(BitNet.cache.verify(url), failsWith('not-cached'))
  await assert.rejects(BitNet.load(url, { cache: 'only' }), failsWith('not-cached'))
  await assert.rejects(BitNet.cache.delete('model.gguf'), failsWith('bad-option'))
})

test('a program that is killed loses only what was not stored', async () => {
  const model = await scripted({ always: { hold: 1 << 20 } })
  const said = await script(`
    const report = ({ phase, loaded }) => { if (loaded >= ${2 << 20}) console.log('come') }
    await BitNet.load(${JSON.stringify(model.url)}, { onProgress: report })`, {
    until: async ({ stdout }, child) => {
      if (!stdout.includes('come')) return
      while ((await BitNet.cache.list())[0]?.bytes === 0) await new Promise(resolve => setTimeout(resolve, 20))
      child.kill('SIGKILL')
    }
  })
  assert.equal(said.signal, 'SIGKILL', said.stderr)
  const [{ bytes, complete }] = await BitNet.cache.list()
  assert.ok(!complete && bytes > 0 && bytes < SIZE, String(bytes))
  assert.equal(await BitNet.cache.missing(model.url), SIZE - bytes)
  await model.rewrite({})
  const rest = await noted(model.url)
  await rest.model.dispose()
  assert.deepEqual(rest.kinds, ['resumed'])
  assert.equal(rest.notes.find(({ kind }) => kind === 'resumed').bytes, bytes)
  assert.equal(await sent(model), SIZE - bytes)
  assert.equal((await BitNet.cache.verify(model.url)).whole, true)
  await BitNet.cache.clear()
})

test('bytes that have changed on the disk are found, and only those are downloaded again', async () => {
  const model = await scripted()
  await (await noted(model.url)).model.dispose()
  const [name] = storedFiles()
  const path = join(CACHE, name)
  const bytes = readFileSync(path)
  bytes[bytes.length >> 1] ^= 1
  writeFileSync(path, bytes)
  await model.rewrite({})
  const { whole, damagedBytes } = await BitNet.cache.verify(model.url)
  assert.ok(!whole && damagedBytes > 0 && damagedBytes < SIZE)
  const again = await noted(model.url)
  await again.model.dispose()
  assert.equal(await sent(model), damagedBytes)
  // A record that is no record is as none.
  for (const record of readdirSync(CACHE).filter(name => name.endsWith('.json'))) writeFileSync(join(CACHE, record), '{"id":')
  assert.deepEqual(await BitNet.cache.list(), [])
  await (await noted(model.url)).model.dispose()
  assert.equal((await BitNet.cache.verify(model.url)).whole, true)
  assert.equal(storedFiles().length, 1)
  await BitNet.cache.clear()
})

test('of two programs that load the same model, one downloads it', async () => {
  const model = await scripted({ always: { pace: 256 << 10, ms: 20 } })
  const load = () => script(`
    const notes = new Set()
    const model = await BitNet.load(${JSON.stringify(model.url)}, { onProgress: p => p.notes.forEach(({ kind }) => notes.add(kind)) })
    await model.stored
    console.log(model.info.bytes, [...notes].filter(kind => kind !== 'cpu').join())`)
  const both = await Promise.all([load(), load()])
  assert.deepEqual(both.map(({ status, stderr }) => [status, stderr]), [[0, ''], [0, '']])
  assert.deepEqual(both.map(({ stdout }) => stdout.trim()).sort(), [`${SIZE}`, `${SIZE} waiting`])
  assert.equal(await sent(model), SIZE)
  await BitNet.cache.clear()
})

/** A program that loads models one after the other, and says the notes of each and what is stored in the end. */
const loading = (...urls) => `
  import { BitNet } from ${JSON.stringify(new URL('../../pkg/node/index.js', import.meta.url).href)}
  let notes
  for (const url of ${JSON.stringify(urls)}) {
    const model = await BitNet.load(url, { onProgress: progress => { notes = progress.notes } })
    await model.stored
    console.log(notes.map(({ kind }) => kind).filter(kind => kind !== 'cpu').join(), await model.tokenize('a').then(ids => ids.length))
    await model.dispose()
  }
  // A record that it did not fit comes last.
  let code
  for (let n = 0; n < 5 && (code ?? 'not-cached') === 'not-cached'; n++) {
    await new Promise(resolve => setTimeout(resolve, 20))
    code = await BitNet.load(${JSON.stringify(urls.at(-1))}, { cache: 'only' }).then(model => (model.dispose(), 'stored'), error => error.code)
  }
  console.log(code, (await BitNet.cache.list()).filter(({ bytes }) => bytes > 0).map(({ url, complete }) => url + complete).join())`

test('files that may not be so long are no full disk: nothing is stored or deleted, and the load goes on', { skip: process.platform === 'win32' }, async () => {
  const [kept, model] = [await scripted(), await scripted()]
  await (await noted(kept.url)).model.dispose()
  // A file may have half the bytes of the model.
  const { status, stdout, stderr } = await run('bash', ['-c', `ulimit -f ${SIZE >> 11}; exec "$0" --input-type=module -e "$1"`, process.execPath, loading(model.url)])
  assert.equal(status, 0, stderr)
  assert.deepEqual(stdout.trim().split('\n'), ['not-stored 1', `not-cached ${kept.url}true`])
  await BitNet.cache.clear()
})

test('on a full disk, models that were not used for long are deleted; if that is not enough, nothing is stored', { skip: noMounts }, async () => {
  const [first, second] = [await scripted(), await scripted()]
  const folder = join(CACHE, 'small')
  mkdirSync(folder)
  for (const [size, urls, said] of [
    [SIZE + (SIZE >> 1), [first.url, second.url], [' 1', 'evicted 1', `stored ${second.url}true`]],
    [SIZE >> 1, [first.url], ['not-stored 1', 'storage-full ']]
  ]) {
    const bash = `mount -t tmpfs -o size=${size} none ${folder}; exec "$0" --input-type=module -e "$1"`
    const { status, stdout, stderr } = await mounted(bash, loading(...urls), { TRITLOOM_CACHE: folder })
    assert.equal(status, 0, stderr)
    assert.deepEqual(stdout.replace(/\n$/, '').split('\n'), said)
  }
})

test('a folder that cannot be made stores nothing, and the load goes on', async () => {
  const { url } = await scripted()
  const file = join(CACHE, 'file')
  writeFileSync(file, '')
  process.env.TRITLOOM_CACHE = join(file, 'folder')
  try {
    const { model, notes } = await noted(url)
    await model.dispose()
    assert.match(notes.find(({ kind }) => kind === 'not-stored').why, /ENOTDIR|EEXIST|ENOENT/)
    await assert.rejects(BitNet.cache.list(), failsWith('storage'))
  } finally {
    process.env.TRITLOOM_CACHE = CACHE
  }
})

test('a model in a folder that cannot be written is loaded from there', { skip: process.getuid?.() === 0 && 'root may write anywhere' }, async () => {
  const { url, requests } = await scripted()
  await (await noted(url)).model.dispose()
  const asked = (await requests()).length
  const folders = [CACHE, join(CACHE, 'locks')]
  for (const folder of folders) chmodSync(folder, 0o555)
  try {
    await (await noted(url, { cache: 'only' })).model.dispose()
    assert.equal((await requests()).length, asked)
  } finally {
    for (const folder of folders) chmodSync(folder, 0o755)
  }
  await BitNet.cache.clear()
})
