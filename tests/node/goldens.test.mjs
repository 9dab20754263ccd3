// The package in Node: models from everywhere give their golden texts, computed by the CPU.
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { inRoot } from '../../scripts/paths.mjs'
import { spreadModel, volumes } from '../web/models.mjs'
import {
  BitNet, BUNDLED, bundledGoldens, CACHE, continuation, expected, failsWith, GOLDEN, goldens, PACKAGE, run, script, using
} from './support.mjs'

test('every golden text of a small model, token by token', () => using(GOLDEN, {}, async model => {
  assert.equal(model.info.backend, 'cpu')
  assert.equal(goldens.length, 9)
  for (const golden of goldens) assert.deepEqual(await continuation(model, golden), expected(golden), golden.name)
}))

test('one thread computes unless more are asked for, which give the same texts', { timeout: 300_000 }, async () => {
  await using(GOLDEN, {}, async model => assert.equal(model.info.threads, 1))
  // Node 20 makes wrong code of waits: see src/cpu/machine/bell.rs. That stopped one load of three.
  for (const golden of goldens) {
    await using(GOLDEN, { backend: 'cpu', threads: 2, strict: true, template: 'builtin' }, async model => {
      assert.equal(model.info.threads, 2)
      assert.deepEqual(await continuation(model, golden), expected(golden), golden.name)
    })
  }
})

test('the bundled model answers, token by token', () => using(BUNDLED, {}, async model => {
  const golden = bundledGoldens.find(({ name }) => name === 'who')
  assert.deepEqual(await continuation(model, golden), expected(golden))
}))

test('the code of docs/NODE.md runs', async () => {
  const blocks = [...readFileSync(inRoot('docs', 'NODE.md'), 'utf8').matchAll(/^```js\n(.*?)^```$/gms)]
  assert.equal(blocks.length, 2)
  for (const [, code] of blocks) {
    const given = code.includes('OpenAI') ? "import OpenAI from 'openai'\n" : ''
    const body = given + code.replace("from 'tritloom'", `from '${pathToFileURL(PACKAGE)}'`)
    const { status, stdout, stderr } = await run(process.execPath, ['--input-type=module', '-e', body])
    assert.equal(status, 0, stderr)
    if (!given) assert.ok(stdout.length > 100, stdout)
  }
})

test('a model is loaded from a path, an address of a file, a blob, bytes, a stream, and in this thread', async () => {
  const bytes = readFileSync(GOLDEN)
  const golden = goldens.find(({ name }) => name === 'who')
  for (const [source, options] of [
    ['tests/data/golden/golden.gguf'], [pathToFileURL(GOLDEN)], [pathToFileURL(GOLDEN).href], [new Blob([bytes])],
    [new Uint8Array(bytes)], [new Blob([bytes]).stream()], [GOLDEN, { worker: false }]
  ]) {
    await using(source, { backend: 'cpu', ...options }, async model => {
      assert.equal((await continuation(model, golden)).text, golden.greedy_text, String(source))
    })
  }
  assert.deepEqual(await BitNet.cache.list(), [])
})

test('chats, formats, batches and tokens are as in pages', async () => {
  const model = await BitNet.load(GOLDEN)
  const chat = model.createChat()
  const [who, followUp] = ['who', 'follow_up'].map(name => goldens.find(golden => golden.name === name))
  assert.equal(await chat.send('Who are you?', { maxTokens: 40 }).text(), who.greedy_text)
  const { messages } = await model.restoreChat(await chat.save())
  assert.deepEqual(messages, chat.messages)
  const value = await model.generate('Who?', { responseFormat: { type: 'json_schema', schema: { enum: ['a'] } } }).json()
  assert.equal(value, 'a')
  const texts = model.generateMany(['Who are you?', 'Who are you?'], { maxTokens: 40 }).map(answer => answer.text())
  assert.deepEqual(await Promise.all(texts), [who.greedy_text, who.greedy_text])
  assert.equal(await model.detokenize(await model.tokenize('Zoë 東京')), 'Zoë 東京')
  const turns = followUp.turns.map(([role, content]) => ({ role, content }))
  assert.equal(await model.countTokens(turns), followUp.ids.length)
  const stop = new AbortController()
  const answer = model.generate('Who are you?', { signal: stop.signal })
  stop.abort(new Error('enough'))
  await assert.rejects(answer.text(), /enough/)
  assert.equal((await answer.stats).finishReason, 'abort')
  await model.dispose()
  await assert.rejects(model.tokenize('a'), failsWith('disposed'))
})

test('what is no model is refused', async () => {
  const broken = join(CACHE, 'broken.gguf')
  const bytes = readFileSync(GOLDEN)
  for (const [source, code, options] of [
    ['', 'bad-option'], ['http://', 'bad-option'], ['nowhere.gguf', 'io'], ['.', 'io'], [`${GOLDEN}/a`, 'io'],
    ['file://elsewhere/golden.gguf', 'io'], ['package.json', 'bad-gguf'], [new Uint8Array(), 'bad-gguf'], [7, 'bad-option'],
    [GOLDEN, 'bad-option', { worker: {} }], [GOLDEN, 'bad-option', { backend: 'gpu' }], [GOLDEN, 'no-webgpu', { backend: 'webgpu' }],
    [GOLDEN, 'no-webgpu', { strict: true }], [GOLDEN, 'integrity', { integrity: `sha256-${'A'.repeat(43)}=` }]
  ]) await assert.rejects(BitNet.load(source, options), failsWith(code), `${source} ${JSON.stringify(options)}`)
  writeFileSync(broken, bytes.subarray(0, bytes.length - 1))
  await assert.rejects(BitNet.load(broken), failsWith('bad-gguf'))
  const stop = AbortSignal.abort(new Error('enough'))
  await assert.rejects(BitNet.load(GOLDEN, { signal: stop }), /enough/)
})

test('a model in several files is loaded by the path of the first', async t => {
  const folder = mkdtempSync(join(tmpdir(), 'tritloom-volumes-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const paths = volumes(3).map((bytes, index) => {
    const path = join(folder, `model-0000${index + 1}-of-00003.gguf`)
    writeFileSync(path, bytes)
    return path
  })
  const ids = Uint32Array.from([1, 2, 3])
  let logits
  await using(spreadModel(), {}, async model => { logits = await model.logits(ids) })
  for (const source of [paths[0], pathToFileURL(paths[0])]) {
    await using(source, {}, async model => assert.deepEqual(await model.logits(ids), logits))
  }
  await assert.rejects(BitNet.load(paths[1]), failsWith('bad-option', /file 2 of 3/))
  await assert.rejects(BitNet.load(paths[0], { integrity: `sha256-${'A'.repeat(43)}=` }), failsWith('bad-option', /`integrity`/))
  for (const source of [[], ['a'], [new Blob(), 'a']]) await assert.rejects(BitNet.load(source), failsWith('bad-option'))
  rmSync(paths[2])
  await assert.rejects(BitNet.load(paths[0]), failsWith('io', /00003-of-00003/))
})

test('an installed package is found by its name, and says what computes', async t => {
  const folder = mkdtempSync(join(tmpdir(), 'tritloom-installed-'))
  t.after(() => rmSync(folder, { recursive: true }))
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(inRoot('pkg'), join(folder, 'node_modules', 'tritloom'), 'junction')
  writeFileSync(join(folder, 'program.mjs'), `
    import { BitNet } from 'tritloom'
    const { available, backend, backends } = await BitNet.availability({ bytes: 1e9 })
    console.log(JSON.stringify([available, backend, backends]))`)
  const { status, stdout, stderr } = await run(process.execPath, [join(folder, 'program.mjs')])
  assert.equal(status, 0, stderr)
  const [available, backend, { webgpu, cpu }] = JSON.parse(stdout)
  assert.deepEqual([available, backend, webgpu.available, cpu.available], [true, 'cpu', false, true])
  assert.match(webgpu.reason, /the package `webgpu`/)
  assert.ok(cpu.tokensPerSecond > 0)
  // Bundlers for pages in a program of Node have both conditions.
  writeFileSync(join(folder, 'where.mjs'), "console.log(import.meta.resolve('tritloom'))")
  for (const [conditions, script] of [[[], /\/node\/index\.js$/m], [['--conditions', 'browser'], /(?<!node)\/index\.js$/m]]) {
    assert.match((await run(process.execPath, [...conditions, join(folder, 'where.mjs')])).stdout, script)
  }
})

test('a program ends although a model is loaded, but not before its answer', async () => {
  const { status, stdout, stderr } = await script(`
    const model = await BitNet.load(${JSON.stringify(GOLDEN)})
    model.generate('Who are you?', { maxTokens: 40 }).text().then(console.log)`)
  assert.deepEqual([status, stderr], [0, ''])
  assert.equal(stdout.trim(), goldens.find(({ name }) => name === 'who').greedy_text)
})
