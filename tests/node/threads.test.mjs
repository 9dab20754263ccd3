// The threads of a load and of a model: those that fetch, one that dies, one that is ended in the middle of a load, and
// Dawn, which must not be.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import threads from 'node:worker_threads'
import { inRoot } from '../../scripts/paths.mjs'
import { spreadModel, WIDE_SIZE } from '../web/models.mjs'

/** The threads that were made, the last one at the end. */
const made = []
threads.Worker = class extends threads.Worker {
  constructor(...args) {
    super(...args)
    made.push(this)
  }
}
syncBuiltinESMExports()

const { BitNet, failsWith, GOLDEN, noted, PACKAGE, run, server } = await import('./support.mjs')
const { scripted } = await server()

test('calls of a thread that dies fail, and its locks are free', async () => {
  const { url } = await scripted()
  const { model } = await noted(url)
  const answer = model.generate('Who are you?', { raw: true, maxTokens: 30 })
  const failed = assert.rejects(answer.text(), failsWith('internal', /ended/))
  await made.at(-1).terminate()
  await failed
  assert.equal((await model.ended).code, 'internal')
  await assert.rejects(model.tokenize('a'), failsWith('internal'))
  await model.dispose()
  const again = await noted(url)
  assert.deepEqual(again.kinds, [])
  // No lock of the dead thread keeps the model in use.
  const { locks } = await import(inRoot('pkg', 'node', 'locks.js'))
  assert.equal((await locks.query()).held.length, 1)
  await again.model.dispose()
  assert.equal((await again.model.ended).code, 'disposed')
  await BitNet.cache.clear()
})

test('a load whose thread dies fails, and so does one that is aborted; the next one goes on', async () => {
  const model = await scripted({ always: { hold: 2 << 20 } })
  const stored = async () => (await BitNet.cache.list())[0]?.bytes ?? 0
  const begun = () => new Promise(resolve => {
    const stop = new AbortController()
    const onProgress = ({ loaded }) => { if (loaded > 1 << 20) resolve(stop) }
    BitNet.load(model.url, { onProgress, signal: stop.signal }).then(() => failures.push('loaded'), error => failures.push(error))
  })
  const failures = []
  await begun()
  for (let n = 0; n < 500 && await stored() === 0; n++) await new Promise(resolve => setTimeout(resolve, 20))
  await made.at(-1).terminate()
  const stop = await begun()
  stop.abort(new Error('enough'))
  await new Promise(resolve => made.at(-1).once('exit', resolve))
  failsWith('internal', /ended/)(failures[0])
  assert.equal(failures[1].message, 'enough')
  await model.rewrite({})
  const { model: loaded, kinds } = await noted(model.url)
  assert.deepEqual(kinds, ['resumed'])
  await loaded.dispose()
  assert.equal((await BitNet.cache.verify(model.url)).whole, true)
  await BitNet.cache.clear()
})

test('threads end, and many models make no listeners that stay', async () => {
  const before = ['beforeExit', 'exit'].map(name => process.listenerCount(name))
  for (let n = 0; n < 3; n++) {
    const model = await BitNet.load(GOLDEN, { backend: 'cpu' })
    const ended = new Promise(resolve => made.at(-1).once('exit', resolve))
    await model.dispose()
    await ended
  }
  assert.deepEqual(['beforeExit', 'exit'].map(name => process.listenerCount(name)), before)
})

test('on a fast connection two threads make the requests of a load, and end with it', async t => {
  const folder = mkdtempSync(join(tmpdir(), 'tritloom-fast-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const [log, preload, program] = ['log', 'fast.mjs', 'program.mjs'].map(name => join(folder, name))
  // Every thread runs this first. Its clock stands still, as if all bytes came at once, and there are processors enough.
  // It notes which threads run, and which have ended.
  writeFileSync(preload, `
    import { appendFileSync } from 'node:fs'
    import { syncBuiltinESMExports } from 'node:module'
    import threads from 'node:worker_threads'
    Date.now = () => 0
    Object.defineProperty(globalThis, 'navigator', { value: { hardwareConcurrency: 4 }, configurable: true })
    threads.Worker = class extends threads.Worker {
      constructor(script, options) {
        super(script, { ...options, execArgv: ['--import', import.meta.url] })
        if (!options.workerData.script.endsWith('/fetch-worker.js')) return
        this.once('message', () => appendFileSync(${JSON.stringify(log)}, 'runs '))
        this.once('exit', () => appendFileSync(${JSON.stringify(log)}, 'ended '))
      }
    }
    syncBuiltinESMExports()`)
  const MIB = 1 << 20
  const integrity = `sha256-${createHash('sha256').update(spreadModel(WIDE_SIZE)).digest('base64')}`
  for (const worker of [true, false]) {
    writeFileSync(log, '')
    // While the second part is held, only two more are asked for.
    const { url, requests, release } = await scripted({ from: { [MIB]: { hold: MIB } } }, '/wide.gguf')
    writeFileSync(program, `
      import { readFileSync } from 'node:fs'
      import { BitNet } from ${JSON.stringify(pathToFileURL(PACKAGE))}
      const options = { worker: ${worker}, cache: 'off', integrity: '${integrity}' }
      const model = await BitNet.load('${url}', options)
      console.log(model.info.backend)
      while (!readFileSync(${JSON.stringify(log)}, 'utf8').endsWith('ended ended ')) await new Promise(resolve => setTimeout(resolve, 20))
      await model.dispose()`)
    const running = run(process.execPath, ['--import', pathToFileURL(preload).href, program])
    while (readFileSync(log, 'utf8') !== 'runs runs ') await new Promise(resolve => setTimeout(resolve, 20))
    await release()
    const { status, stdout, stderr } = await running
    assert.deepEqual([status, stdout, stderr], [0, 'cpu\n', ''])
    const seen = await requests()
    assert.equal(seen.reduce((sum, { sent }) => sum + sent, 0), WIDE_SIZE)
    const lengths = seen.map(({ range }) => {
      const [first, last] = /=(\d+)-(\d+)/.exec(range).slice(1).map(Number)
      return last + 1 - first
    })
    assert.ok(lengths.filter(length => length === 8 * MIB).length >= 4, lengths.join())
  }
})

/** The package as it is installed, beside a package `webgpu` of this text. */
const installed = (t, webgpu) => {
  const folder = mkdtempSync(join(tmpdir(), 'tritloom-webgpu-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const of = name => join(folder, 'node_modules', name)
  cpSync(inRoot('pkg'), of('tritloom'), { recursive: true })
  mkdirSync(of('webgpu'))
  writeFileSync(join(of('webgpu'), 'package.json'), '{ "name": "webgpu", "type": "module", "exports": "./index.js" }')
  writeFileSync(join(of('webgpu'), 'index.js'), webgpu)
  return {
    folder,
    program: async code => {
      const path = join(folder, 'program.mjs')
      writeFileSync(path, `import { BitNet } from 'tritloom'\n${code}`)
      const { status, stdout, stderr } = await run(process.execPath, [path])
      assert.deepEqual([status, stderr], [0, ''])
      return stdout.trim()
    }
  }
}

/** Dawn's classes, whose methods do nothing. */
const CLASSES = `
  const methods = {
    GPUAdapter: ['requestDevice'], GPUDevice: ['createComputePipelineAsync', 'popErrorScope'], GPUBuffer: ['mapAsync'],
    GPUQueue: ['onSubmittedWorkDone']
  }
  export const globals = Object.fromEntries(Object.entries(methods).map(([name, methods]) =>
    [name, class { static { for (const method of methods) this.prototype[method] = async () => {} } }]))
  globals.GPU = class { async requestAdapter() { return null } }
  export const create = () => new globals.GPU()`

test('a package `webgpu` of another version counts as none, and none makes a program a worker', async t => {
  for (const [webgpu, reason] of [
    ['export const old = 1', /the package .webgpu/], ["export const globals = {}, create = () => { throw new Error('no Vulkan') }", /the package .webgpu/],
    [CLASSES.replace(/GPUQueue.*/, ''), /the package .webgpu/], [CLASSES, /no GPU adapter/]
  ]) {
    const { program } = installed(t, webgpu)
    const [found, backends, scope] = JSON.parse(await program(`
      const { available, backends } = await BitNet.availability()
      const scope = 'WorkerGlobalScope' in globalThis
      const backendsOf = []
      for (const worker of [true, false]) {
        const model = await BitNet.load(${JSON.stringify(GOLDEN)}, { worker })
        backendsOf.push(model.info.backend)
        await model.dispose()
      }
      console.log(JSON.stringify([[available, backends.webgpu.reason], backendsOf, scope]))`))
    assert.deepEqual([found[0], backends, scope], [true, ['cpu', 'cpu'], false])
    assert.match(found[1], reason)
  }
})

test('Dawn ends its work before its thread and the program end, whenever that is asked', async t => {
  // It works for a second, and notes when it begins and ends.
  const { program, folder } = installed(t, `
    import { appendFileSync } from 'node:fs'
    ${CLASSES}
    globals.GPU.prototype.requestAdapter = async () => {
      appendFileSync(new URL('../../log', import.meta.url), 'begin ')
      await new Promise(resolve => setTimeout(resolve, 1000))
      appendFileSync(new URL('../../log', import.meta.url), 'end ')
      return null
    }`)
  const source = JSON.stringify(GOLDEN)
  for (const code of [
    // The program waits for the load; it is aborted while Dawn works; and before the page knows that it does.
    `await BitNet.load(${source}).then(model => model.dispose())`,
    `import { existsSync } from 'node:fs'
    const stop = new AbortController()
    const loading = BitNet.load(${source}, { signal: stop.signal }).catch(() => {})
    const wait = setInterval(() => { if (existsSync(${JSON.stringify(join(folder, 'log'))})) { clearInterval(wait); stop.abort() } }, 1)
    await loading`,
    `import { existsSync } from 'node:fs'
    const stop = new AbortController()
    const loading = BitNet.load(${source}, { signal: stop.signal }).catch(() => {})
    const [end, never] = [performance.now() + 60_000, new Int32Array(new SharedArrayBuffer(4))]
    setTimeout(() => {
      while (!existsSync(${JSON.stringify(join(folder, 'log'))}) && performance.now() < end) Atomics.wait(never, 0, 0, 5)
      stop.abort()
    }, 100)
    await loading`
  ]) {
    rmSync(join(folder, 'log'), { force: true })
    await program(code)
    // An adapter in compatibility mode may be asked for after the first answer.
    assert.match(readFileSync(join(folder, 'log'), 'utf8'), /^(begin end )+$/)
  }
})
