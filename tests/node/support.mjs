// For tests of the package in Node: a folder for stored models, a server of models, and programs.
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { inRoot } from '../../scripts/paths.mjs'

/** Stored models of this test file. It is gone when the file's tests have ended. */
export const CACHE = mkdtempSync(join(tmpdir(), 'tritloom-node-'))
process.env.TRITLOOM_CACHE = CACHE
after(() => rmSync(CACHE, { recursive: true, force: true }))

export const PACKAGE = inRoot('pkg', 'node', 'index.js')
export const { BitNet, BitNetError } = await import(PACKAGE)

export * from './goldens.mjs'

/** Checks for an error of ours with this code. */
export const failsWith = (code, said = /./) => error => {
  assert.ok(error instanceof BitNetError, String(error?.stack ?? error))
  assert.equal(error.code, code, error.message)
  assert.match(error.message, said)
  return true
}

/** Loads a model for `work`. Releases of Node that are still in use have no `await using`. */
export const using = async (source, options, work) => {
  const model = await BitNet.load(source, options)
  try {
    await work(model)
  } finally {
    await model.dispose()
  }
}

/** Loads, and keeps the notes. */
export const noted = async (source, options = {}) => {
  const notes = []
  const phases = []
  const onProgress = progress => {
    notes.splice(0, notes.length, ...progress.notes)
    phases.push(progress.phase)
  }
  const model = await BitNet.load(source, { ...options, onProgress })
  await model.stored
  return { model, phases, kinds: notes.map(({ kind }) => kind).filter(kind => kind !== 'cpu'), notes }
}

/** Runs the server of the browser tests: see tests/web/server.mjs. */
export const server = async () => {
  const port = Number(process.env.PORT ?? 40_000 + (process.pid % 12_000) * 2)
  const child = spawn(process.execPath, [inRoot('tests', 'web', 'server.mjs')], {
    env: { ...process.env, PORT: String(port) }, stdio: 'inherit'
  })
  after(() => child.kill())
  const origin = `http://localhost:${port}`
  const control = async (what, body) => {
    const response = await fetch(`${origin}/control/${what}`, body ? { method: 'POST', body: JSON.stringify(body) } : {})
    return response.text()
  }
  for (;;) {
    if (await control('count').catch(() => undefined) !== undefined) break
    await new Promise(resolve => setTimeout(resolve, 50))
  }
  let scripts = 0
  return {
    origin,
    /** How many models were asked for so far. */
    count: async () => Number(await control('count')),
    /** A model of several parts, answered by a script. */
    async scripted(script = {}, file = '/spread.gguf') {
      const name = `${port}-${scripts++}`
      await control(`script/${name}`, script)
      return {
        url: `${origin}/script/${name}${file}`,
        rewrite: script => control(`script/${name}`, script),
        release: () => control(`release/${name}`),
        requests: async () => JSON.parse(await control(`script/${name}`))
      }
    }
  }
}

/** Runs a program to its end, or until `stop` resolves. */
export const run = (command, args, { input = '', env = {}, until } = {}) => new Promise(resolve => {
  const child = spawn(command, args, { env: { ...process.env, ...env }, stdio: ['pipe', 'pipe', 'pipe'] })
  const said = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr']) {
    child[name].setEncoding('utf8').on('data', text => {
      said[name] += text
      until?.(said, child)
    })
  }
  child.stdin.on('error', () => {})
  if (input !== null) child.stdin.end(input)
  child.on('close', (status, signal) => resolve({ status, signal, ...said }))
})

/** Runs a script of bash that may mount. `$0` is Node, and `$1` the program `code`. */
export const mounted = (bash, code, env) => run('unshare', ['-rm', 'bash', '-c', bash, process.execPath, code], { env })

/** The reason why `mounted` cannot run here, or false. */
export const noMounts = spawnSync('unshare', ['-rm', 'true']).status !== 0 && 'nothing can be mounted here'

/** Runs a program of JavaScript that has `BitNet`. */
export const script = (code, options = {}) =>
  run(process.execPath, ['--input-type=module', '-e', `import { BitNet } from ${JSON.stringify(`file://${PACKAGE}`)}\n${code}`], options)
