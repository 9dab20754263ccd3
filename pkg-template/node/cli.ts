#!/usr/bin/env node
// The command `tritloom`: answers, talks, embeds, or serves OpenAI's interface.
import { createInterface } from 'node:readline'
import { text as textOf } from 'node:stream/consumers'
import { BitNet, BitNetError } from './index.js'
import { badOption } from '../check.js'
import type { Generation } from '../generation.js'
import type { Progress, Token } from '../types.js'
import {
  ANSWER, answerOf, answersOf, described, EMBED, embedOf, GENERATE, kebab, LOAD, loadOf, numberOf, read, Usage
} from './options.js'
import type { Given, Table } from './options.js'
import { codeOf } from './owner.js'
import { serve } from './serve.js'

const { stdin, stdout, stderr } = process

/** The end by a signal of the user, or because standard output was closed. */
class Stopped extends Error {}

interface Command {
  about: string
  /** The text after its name in the help. */
  form: string
  options: Table
  run: (given: Given, rest: string[]) => Promise<void>
}

const COMMANDS: Record<string, Command> = {
  run: {
    about: 'Answer a prompt', form: '[PROMPT] [OPTIONS]', options: { ...GENERATE, ...ANSWER }, run
  },
  chat: {
    about: 'Talk with the model, a line at a time', form: '[OPTIONS]', run: chat,
    options: { 'system': { value: 'TEXT', help: 'What the model is told before all else' }, ...GENERATE }
  },
  embed: {
    about: 'Print the vectors of texts, one as a line of JSON', form: '[TEXT]... [OPTIONS]', options: EMBED, run: embed
  },
  serve: {
    about: 'Serve OpenAI\'s interface over HTTP', form: '[OPTIONS]', run: serving,
    options: {
      'port': { value: 'N', help: 'The port, 8080 by default; 0 takes a free one' },
      'host': { value: 'HOST', help: 'The address to listen at; by default nothing listens beyond localhost' },
      'key': { value: 'KEY', help: 'Every request must have this key; others see it less in the variable TRITLOOM_KEY' },
      'cors': { value: 'ORIGIN', many: true, help: 'Let pages of this origin ask; * lets all' }
    }
  }
}

const HELP: Table = { 'help': { help: 'Print this' }, 'version': { help: 'Print the version' } }

const usage = (): string => [
  'Ternary language models on the GPU or the CPU.', '', 'Usage: tritloom COMMAND [OPTIONS]', '',
  ...Object.entries(COMMANDS).map(([name, { about }]) => `  ${name.padEnd(10)}${about}`), '',
  'tritloom COMMAND --help lists the options of a command.'
].join('\n')

const helpOf = (name: string, { about, form, options }: Command): string =>
  [`${about}.`, '', `Usage: tritloom ${name} ${form}`, '', described({ ...options, ...LOAD, ...HELP })].join('\n')

async function main([name = '', ...args]: string[]): Promise<void> {
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined
  if (!command) {
    if (name === '--version') return print(`${BitNet.version}\n`)
    if (name === '--help' || name === '') return print(`${usage()}\n`)
    throw new Usage(`there is no command '${name}'\n\n${usage()}`)
  }
  const { given, rest } = read(args, { ...command.options, ...LOAD, ...HELP })
  if (given['version']) return print(`${BitNet.version}\n`)
  if (given['help']) return print(`${helpOf(name, command)}\n`)
  return command.run(given, rest)
}

/** Writes to standard output. Resolves when that is done; rejects if its reader has gone. */
const print = (text: string): Promise<void> => new Promise((resolve, reject) => {
  stdout.write(text, error => error ? reject(new Stopped()) : resolve())
})

const note = (text: string): void => { stderr.write(`note: ${text}\n`) }

/** Loads the model of a command line. */
async function load(given: Given): Promise<BitNet> {
  const { source, options } = loadOf(given)
  const stop = new AbortController()
  const end = () => stop.abort(new Stopped())
  process.once('SIGINT', end)
  let shown = 0
  const onProgress = ({ phase, fraction, bytesPerSecond, notes }: Progress) => {
    // Other notes are in `model.info.notes`.
    for (const event of notes.slice(shown)) {
      if (event.kind === 'not-stored') note(`the model is not stored: ${event.why}`)
    }
    shown = notes.length
    if (!stderr.isTTY || phase === 'storing' || phase === 'stored') return
    const rate = phase === 'download' && bytesPerSecond > 0 ? `, ${(bytesPerSecond / 1e6).toFixed(1)} MB/s` : ''
    stderr.write(phase === 'ready' ? '\r\x1b[K' : `\r\x1b[K${phase} ${Math.floor(100 * fraction)} %${rate}`)
  }
  try {
    const model = await BitNet.load(source, { ...options, onProgress, signal: stop.signal })
    for (const why of model.info.notes) note(why)
    return model
  } finally {
    process.off('SIGINT', end)
  }
}

/** Runs `work` with a model, and a signal that aborts when the user wants it to end. */
async function withModel(given: Given, work: (model: BitNet, stop: AbortSignal) => Promise<void>): Promise<void> {
  const model = await load(given)
  const stop = new AbortController()
  const end = () => stop.abort(new Stopped())
  process.once('SIGINT', end).once('SIGTERM', end)
  stdout.on('error', end)
  try {
    await work(model, stop.signal)
    await stored(model, stop.signal)
  } finally {
    await model.dispose()
  }
}

/** Waits until the rest of the model is stored, which would be lost otherwise, or until the user wants it to end. */
const stored = (model: BitNet, stop: AbortSignal): Promise<void> => Promise.race([model.stored, aborted(stop)])

const aborted = (signal: AbortSignal): Promise<void> => new Promise(resolve => {
  if (signal.aborted) resolve()
  signal.addEventListener('abort', () => resolve())
})

async function run(given: Given, [prompt, ...more]: string[]): Promise<void> {
  if (more.length > 0) throw new Usage('give the prompt as one argument, in quotes')
  const options = answerOf(given)
  loadOf(given)
  const asked = await promptOf(prompt)
  await withModel(given, async (model, signal) => {
    const { calls } = await show(model.generate(asked, { ...options, signal }))
    if (!calls) await print('\n')
  })
}

/** The prompt of the command line, or of standard input. */
async function promptOf(argument: string | undefined): Promise<string> {
  if (argument !== undefined && argument !== '-') return argument
  const said = argument === undefined && stdin.isTTY ? '' : await textOf(stdin)
  if (argument === undefined && said === '') {
    throw new Usage('the prompt is missing: give it as an argument or on standard input')
  }
  // Most programs end their output with a line break, which is not part of the prompt.
  return said.replace(/\r?\n$/, '')
}

/** Prints an answer as it comes: reasoning to standard error, and calls as lines of JSON. */
async function show(answer: Generation): Promise<{ calls: boolean }> {
  // Its failure is that of `tokens()`.
  answer.stats.catch(() => {})
  let within = false
  let calls = false
  for await (const { text, channel, call } of answer.tokens()) {
    if (channel === 'reasoning') {
      stderr.write(text)
      continue
    }
    const line: string = call ? lineOf(text, call, within) : text
    calls ||= call !== undefined
    if (line !== '') within = !line.endsWith('\n')
    await print(line)
  }
  const { finishReason, completionTokens, decodeTokensPerSecond } = await answer.stats
  if (stderr.isTTY) stderr.write(`\n(${completionTokens} tokens, ${decodeTokensPerSecond.toFixed(1)} per second)\n`)
  if (finishReason === 'length') note('the answer was cut off: see --max-tokens and --context')
  return { calls: calls && !within }
}

const lineOf = (text: string, { name, ends }: NonNullable<Token['call']>, within: boolean): string => {
  const begin = name ? `${within ? '\n' : ''}{"name": ${JSON.stringify(name)}, "arguments": ` : ''
  return `${begin}${text}${ends ? '}\n' : ''}`
}

/** Texts that are embedded before their vectors are printed. */
const AT_ONCE = 256

async function embed(given: Given, texts: string[]): Promise<void> {
  const options = embedOf(given)
  loadOf(given)
  // Without arguments, each line of standard input is a text.
  const all = texts.length > 0 ? texts : linesOf(stdin.isTTY ? '' : await textOf(stdin))
  if (all.length === 0) throw new Usage('the texts are missing: give them as arguments, or as lines on standard input')
  await withModel(given, async (model, signal) => {
    for (let first = 0; first < all.length; first += AT_ONCE) {
      const vectors = await model.embed(all.slice(first, first + AT_ONCE), { ...options, first, signal })
      for (const vector of vectors) await print(`${JSON.stringify([...vector])}\n`)
    }
  })
}

const linesOf = (text: string): string[] => text === '' ? [] : text.replace(/\r?\n$/, '').split(/\r?\n/)

async function chat(given: Given, rest: string[]): Promise<void> {
  if (rest.length > 0) throw new Usage('a chat reads what you say from standard input')
  const options = answersOf(given)
  loadOf(given)
  const model = await load(given)
  const lines = createInterface({ input: stdin, output: stdin.isTTY ? stdout : undefined, prompt: '> ' })
  const over = new AbortController()
  let stop: AbortController | undefined
  const leave = () => {
    over.abort(new Stopped())
    stop?.abort(new Stopped())
    lines.close()
  }
  // It ends the answer, or else the chat.
  const end = () => stop ? stop.abort(new Stopped()) : leave()
  lines.on('SIGINT', end)
  process.on('SIGINT', end).once('SIGTERM', leave)
  stdout.on('error', leave)
  try {
    const talk = model.createChat({
      ...options, overflow: 'slide', ...(given['system'] !== undefined ? { system: given['system'] as string } : {})
    })
    if (stdin.isTTY) lines.prompt()
    for await (const line of lines) {
      if (line.trim() !== '') {
        stop = new AbortController()
        try {
          await show(talk.send(line, { signal: stop.signal }))
        } catch (error) {
          if (!(error instanceof Stopped)) throw error
        }
        stop = undefined
        await print('\n')
      }
      if (stdin.isTTY) lines.prompt()
    }
    await stored(model, over.signal)
  } finally {
    // Otherwise the program would wait for more to read.
    lines.close()
    stdin.destroy()
    await model.dispose()
  }
}

async function serving(given: Given, rest: string[]): Promise<void> {
  if (rest.length > 0) throw new Usage(`unexpected argument '${rest[0]}'`)
  const port = numberOf('port', (given['port'] as string | undefined) ?? '8080')
  if (!Number.isInteger(port) || port < 0 || port > 65535) throw new Usage('--port must be from 0 to 65535')
  const host = (given['host'] as string | undefined) ?? 'localhost'
  // To a system this is every address of the machine.
  if (host === '') throw new Usage('--host must not be empty')
  const key = (given['key'] as string | undefined) ?? process.env['TRITLOOM_KEY']
  if (key === '') throw new Usage('--key and TRITLOOM_KEY must not be empty')
  const cors = (given['cors'] as string[] | undefined) ?? []
  for (const origin of cors) {
    if (origin !== '*' && !isOrigin(origin)) throw new Usage(`--cors must be an origin such as https://example.com, not '${origin}'`)
  }
  loadOf(given)
  let answer!: (model: BitNet) => void
  const model = new Promise<BitNet>(resolve => { answer = resolve })
  const onError = ({ message }: Error) => note(message)
  // A port that is taken is found before the model is loaded. Requests wait for it.
  const server = await serve(model, { port, host, key, cors, onError }).catch(error => { throw refused(error, host, port) })
  try {
    await withModel(given, async (model, signal) => {
      answer(model)
      const more = server.isEverywhere ? ', and at the other addresses of this machine' : ''
      await print(`${model.info.name || 'the model'} at ${server.address}${more}\n`)
      const why = await Promise.race([aborted(signal), model.ended])
      if (why) throw why
    })
  } finally {
    server.close()
  }
}

/** Whether a text is an origin as browsers write it. */
function isOrigin(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, host } = new URL(text)
  return text === `${protocol}//${host}`
}

/** The error of an address at which it cannot listen. */
function refused(error: unknown, host: string, port: number): unknown {
  const code = codeOf(error) ?? ''
  if (code === 'EADDRINUSE') return badOption('port', `${port} is taken by another program`)
  if (code === 'EACCES') return badOption('port', `${port} is not allowed: ${(error as Error).message}`)
  return code === '' ? error : badOption('host', `cannot listen at ${host}: ${(error as Error).message}`)
}

// Each write has the error too.
stdout.on('error', () => {})

try {
  await main(process.argv.slice(2))
} catch (error) {
  if (error instanceof Usage) {
    stderr.write(`error: ${error.message}\n`)
    process.exitCode = 2
  } else if (error instanceof Stopped) {
    process.exitCode = 130
  } else if (error instanceof BitNetError) {
    stderr.write(`error[${error.code}]: ${kebab(error.message)}\n`)
    process.exitCode = 1
  } else {
    stderr.write(`error: ${error instanceof Error ? error.message : error}\n`)
    process.exitCode = 1
  }
}
