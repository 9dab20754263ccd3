// The command `tritloom` of the package.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { inRoot } from '../../scripts/paths.mjs'
import { BitNet, BUNDLED, CACHE, GOLDEN, goldens, run, server, using } from './support.mjs'

const CLI = inRoot('pkg', 'node', 'cli.js')
const { scripted } = await server()
const tritloom = (args, options) => run(process.execPath, [CLI, ...args], options)
const goldenOf = wanted => goldens.find(({ name }) => name === wanted)
const WHO = goldenOf('who').greedy_text
const MODEL = ['--model', GOLDEN]
const NOTE = 'note: the CPU computes'

test('run answers a prompt, of an argument or of standard input', async () => {
  const said = await tritloom(['run', 'Who are you?', ...MODEL])
  assert.deepEqual([said.status, said.stdout], [0, `${WHO}\n`], said.stderr)
  assert.ok(said.stderr.startsWith(NOTE), said.stderr)
  const piped = await tritloom(['run', ...MODEL, '--backend', 'cpu', '--temperature', '0'], { input: 'Who are you?\n' })
  assert.deepEqual([piped.status, piped.stdout, piped.stderr], [0, `${WHO}\n`, ''])
  const raw = await tritloom(['run', 'Once there was', '--raw', '--max-tokens', '35', ...MODEL])
  assert.ok(raw.stdout.startsWith(goldenOf('once').greedy_text), raw.stdout)
  assert.match(raw.stderr, /--max-tokens/)
})

test('run answers in a format', async () => {
  const schema = join(CACHE, 'schema.json')
  writeFileSync(schema, '{ "enum": ["a fox"] }')
  for (const [args, text] of [[['--schema', schema], '"a fox"\n'], [['--regex', '-1 or more'], '-1 or more\n']]) {
    const { status, stdout, stderr } = await tritloom(['run', 'Who?', ...args, ...MODEL])
    assert.deepEqual([status, stdout], [0, text], stderr)
  }
})

test('run downloads a model and stores it', async () => {
  const { url } = await scripted({ always: { pace: 1 << 20, ms: 5 } })
  const { status, stderr } = await tritloom(['run', 'Who?', '--max-tokens', '1', '--model', url])
  assert.equal(status, 0, stderr)
  assert.deepEqual((await BitNet.cache.list()).map(({ url, complete }) => [url, complete]), [[url, true]])
  const again = await tritloom(['run', 'Who?', '--max-tokens', '1', '--model', url, '--cache', 'only'])
  assert.equal(again.status, 0, again.stderr)
})

test('chat answers line by line, and knows what was said', async () => {
  const { status, stdout, stderr } = await tritloom(['chat', ...MODEL], { input: 'Who are you?\n\nHow small?\n' })
  assert.equal(status, 0, stderr)
  const [who, small] = stdout.trim().split('\n')
  assert.equal(who, WHO)
  await using(GOLDEN, {}, async model => {
    const chat = model.createChat()
    await chat.send('Who are you?').text()
    assert.equal(small, (await chat.send('How small?').text()).split('\n')[0])
  })
})

test('help and version', async () => {
  for (const [args, said] of [
    [['--help'], /run .*chat .*serve/s], [[], /run/], [['run', '--help'], /--max-tokens <N>/], [['serve', '--help'], /--cors/],
    [['--version'], new RegExp(`^${BitNet.version}\n$`)]
  ]) {
    const { status, stdout, stderr } = await tritloom(args)
    assert.deepEqual([status, stderr], [0, ''])
    assert.match(stdout, said)
  }
})

test('wrong command lines are refused before a model is loaded, and failures have their code', async t => {
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  t.after(() => taken.close())
  const wrong = [
    [['talk'], /no command/], [['run', 'a', '--modle', GOLDEN], /--modle/], [['run', 'a'], /--model/], [['run', 'a', 'b', ...MODEL], /quotes/],
    [['run', ...MODEL], /prompt is missing/], [['run', 'a', ...MODEL, '--top-k', 'x'], /--top-k must be a number/],
    [['run', 'a', ...MODEL, '--json', '--regex', 'a'], /exclude/], [['run', 'a', ...MODEL, '--thinking', '--no-thinking'], /exclude/],
    [['run', 'a', ...MODEL, '--logit-bias', '1'], /ID=BIAS/], [['run', 'a', ...MODEL, '--schema', 'nowhere.json'], /nowhere\.json/],
    [['run', 'a', ...MODEL, '--prompt-lookup', 'maybe'], /true or false/], [['run', 'a', ...MODEL, '--tool-choice', 'auto'], /--tools/],
    [['chat', ...MODEL, 'Hello'], /standard input/], [['serve', ...MODEL, '--port', '65536'], /--port/], [['serve', ...MODEL, '--key', ''], /--key/],
    [['serve', ...MODEL, 'a'], /unexpected/], [['run', 'a', '--max-tokens'], /max-tokens/],
    // An empty host would be every address of the machine.
    [['serve', ...MODEL, '--host', ''], /--host must not be empty/], [['run', 'a', ...MODEL, '--threads', 'two'], /--threads must be a number/],
    ...['https://a.example/', 'https://A.example', 'a.example', 'https://a.example:443', 'null'].map(origin =>
      [['serve', ...MODEL, '--cors', origin], /--cors must be an origin/])
  ]
  const failing = [
    [['run', 'a', '--model', 'nowhere.gguf'], /^error\[io\]: /], [['run', 'a', '--model', 'package.json'], /^error\[bad-gguf\]: /],
    [['run', 'a', ...MODEL, '--top-k', '-1'], /^error\[bad-option\]: bad option `--top-k`/m],
    [['run', 'a', ...MODEL, '--kv', 'f64'], /^error\[bad-option\]: bad option `--kv`/m],
    [['run', 'a', ...MODEL, '--backend', 'webgpu'], /^error\[no-webgpu\]: /m],
    // The port is tried before the model is loaded.
    [['serve', '--model', 'nowhere.gguf', '--port', String(taken.address().port)], /^error\[bad-option\]: bad option `--port`: \d+ is taken/],
    [['serve', '--model', 'nowhere.gguf', '--host', '192.0.2.1', '--port', '0'], /^error\[bad-option\]: bad option `--host`/],
    [['serve', '--model', 'nowhere.gguf', '--port', '0'], /^error\[io\]: /]
  ]
  for (const [status, cases] of [[2, wrong], [1, failing]]) {
    for (const [args, said] of cases) {
      const found = await tritloom(args)
      assert.deepEqual([found.status, found.stdout], [status, ''], `${args.join(' ')}\n${found.stderr}`)
      assert.match(found.stderr, said, args.join(' '))
      assert.doesNotMatch(found.stderr, /^ {4}at /m)
    }
  }
})

test('a reader that has enough ends the answer', async () => {
  const args = [process.execPath, CLI, 'run', 'Once', '--raw', '--model', GOLDEN]
  const { status, stderr } = await run('bash', ['-c', '"$@" | head -c 4; exit ${PIPESTATUS[0]}', 'bash', ...args])
  assert.ok([0, 130].includes(status), `${status} ${stderr}`)
  assert.doesNotMatch(stderr, /EPIPE|^ {4}at /m)
})

test('a server whose output is closed ends', async () => {
  const args = [process.execPath, CLI, 'serve', '--port', '0', ...MODEL]
  const { status, stderr } = await run('bash', ['-c', '"$@" | true; exit ${PIPESTATUS[0]}', 'bash', ...args])
  assert.equal(status, 130, stderr)
  assert.doesNotMatch(stderr, /EPIPE|^ {4}at /m)
})

test('a server whose thread dies ends with an error', async () => {
  // Ends the thread of the model at a signal.
  const preload = join(CACHE, 'preload.mjs')
  writeFileSync(preload, `
    import threads from 'node:worker_threads'
    import { syncBuiltinESMExports } from 'node:module'
    const { Worker } = threads
    threads.Worker = class extends Worker {
      constructor(...args) {
        super(...args)
        process.on('SIGUSR2', () => this.terminate())
      }
    }
    syncBuiltinESMExports()`)
  const { status, stderr } = await run(process.execPath, ['--import', preload, CLI, 'serve', '--port', '0', ...MODEL], {
    until: ({ stdout }, child) => { if (stdout.includes(' at http')) child.kill('SIGUSR2') }
  })
  assert.equal(status, 1)
  assert.match(stderr, /^error\[internal\]: .*ended/m)
})

test('a chat ends after an error, although more could be said', async () => {
  const child = spawn(process.execPath, [CLI, 'chat', ...MODEL, '--top-k', '-1'])
  child.stdin.write('Who are you?\n')
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', text => { stderr += text })
  const [status] = await once(child, 'close')
  assert.equal(status, 1)
  assert.match(stderr, /^error\[bad-option\]: bad option `--top-k`/m)
})

test('a chat stores the whole model before it ends', async () => {
  const { url } = await scripted({ always: { pace: 1 << 20, ms: 5 } })
  const { status, stderr } = await tritloom(['chat', '--model', url, '--max-tokens', '1'], { input: 'Who?\n' })
  assert.equal(status, 0, stderr)
  assert.ok((await BitNet.cache.list()).some(model => model.url === url && model.complete))
})

test('SIGINT ends a download, and what came of it stays', async () => {
  const { url } = await scripted({ always: { hold: 2 << 20 } })
  const stored = async () => (await BitNet.cache.list()).find(model => model.url === url)?.bytes ?? 0
  const child = spawn(process.execPath, [CLI, 'run', 'Who?', '--model', url])
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', text => { stderr += text })
  while (await stored() === 0) await new Promise(resolve => setTimeout(resolve, 50))
  child.kill('SIGINT')
  const [status] = await once(child, 'close')
  assert.deepEqual([status, stderr], [130, ''])
  assert.ok(await stored() > 0)
})

test('SIGINT ends an answer; in a chat, the next line is answered', async () => {
  // One signal at the first text. A second one would end the program at once, as a user expects who is impatient.
  const interrupted = () => {
    let isSent = false
    return ({ stdout }, child) => {
      if (!isSent && stdout.length > 0) isSent = child.kill('SIGINT')
    }
  }
  const once = await run(process.execPath, [CLI, 'run', 'Once', '--raw', '--model', BUNDLED], { until: interrupted() })
  assert.equal(once.status, 130, once.stderr)
  assert.doesNotMatch(once.stderr, /^ {4}at |^error/m)
  const chat = await run(process.execPath, [CLI, 'chat', '--model', BUNDLED], {
    input: 'Tell me a long story\nWho are you?\n', until: interrupted()
  })
  assert.equal(chat.status, 0, chat.stderr)
  assert.equal(chat.stdout.trimEnd().split('\n').length, 2, chat.stdout)
})
