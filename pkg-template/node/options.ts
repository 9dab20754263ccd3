// The options of the command line, named as in the command of the crate.
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import type { EmbedOptions, GenerateOptions, LoadedAdapter, LoadOptions, Tool } from '../types.js'

/** A wrong command line. */
export class Usage extends Error {}

interface Option {
  /** How the value is called; absent if the option has none. */
  value?: string
  /** Whether it may be repeated. */
  many?: true
  help: string
}

export type Table = Readonly<Record<string, Option>>

/** The options of every command: what is loaded, and how. */
export const LOAD: Table = {
  'model': { value: 'FILE or URL', help: 'The model, a GGUF file. What comes from an address is stored' },
  'backend': { value: 'BACKEND', help: 'What computes: auto (the GPU if there is one), webgpu or cpu' },
  'threads': { value: 'N', help: 'Let at most this many threads of the CPU compute' },
  'context': { value: 'N', help: 'Allocate memory for this many tokens of context' },
  'kv': { value: 'TYPE', help: 'How to store keys and values: f16, f32 or int8' },
  'lm-head': { value: 'TYPE', help: 'How to store the LM head: auto, f16 or int8' },
  'max-gpu-bytes': { value: 'N', help: 'Take at most this many bytes of GPU memory; layers that do not fit are uploaded for each pass' },
  'i2s-layout': { value: 'LAYOUT', help: 'The order of ternary codes: x86 or arm' },
  'tokenizer': { value: 'RULES', help: 'A tokenizer that tritloom does not know: strict refuses it, closest takes the closest' },
  'template': { value: 'TEMPLATE', help: 'The chat template: file, builtin or a Jinja text' },
  'pooling': { value: 'POOLING', help: 'How vectors of texts are made: mean, cls or last, instead of as the file says' },
  'adapter': { value: 'FILE[=SCALE]', many: true, help: 'Apply this adapter (LoRA, a GGUF file), times a scale' },
  'strict': { help: 'Fail rather than replace anything that the file names' },
  'deterministic': { help: 'Give the same bits for the same call each time' },
  'cache': { value: 'MODE', help: 'Stored models: use, revalidate, refresh, only or off' },
  'integrity': { value: 'HASH', help: 'The SHA-256 of the whole file: sha256- and base64' }
}

/** The options of answers. */
export const GENERATE: Table = {
  'max-tokens': { value: 'N', help: 'Generate at most this many tokens' },
  'temperature': { value: 'T', help: 'Divide the logits by this number; with 0, always take the best token' },
  'top-k': { value: 'N', help: 'Choose among this many of the best tokens; with 0, among all' },
  'top-p': { value: 'P', help: 'Choose among the fewest best tokens whose probabilities reach this sum' },
  'min-p': { value: 'P', help: 'Choose among tokens at least this probable relative to the best' },
  'repeat-penalty': { value: 'R', help: 'Divide the logits of tokens in the prompt or the answer by this number' },
  'presence-penalty': { value: 'P', help: 'Subtract this number, from -2 to 2, from the logits of tokens in the answer' },
  'frequency-penalty': { value: 'P', help: 'Subtract this number once for each time that the answer has the token' },
  'logit-bias': { value: 'ID=BIAS', many: true, help: 'Add this number to the logit of the token with this id' },
  'seed': { value: 'N', help: 'The same seed gives the same text' },
  'thinking': { help: 'Let the model reason before it answers' },
  'no-thinking': { help: 'Let the model answer at once' },
  'max-thinking-tokens': { value: 'N', help: 'End the reasoning after this many tokens' },
  'prompt-lookup': { value: 'BOOL', help: 'Draft greedy tokens if the text repeats itself' }
}

/** The options of a single answer. */
export const ANSWER: Table = {
  'raw': { help: 'Continue the prompt as it is, without a chat template' },
  'schema': { value: 'FILE', help: 'Answer with JSON that is valid by the JSON schema in this file' },
  'json': { help: 'Answer with a JSON object' },
  'regex': { value: 'PATTERN', help: 'Answer with a text that this regular expression matches as a whole' },
  'tools': { value: 'FILE', help: 'Let the model call the tools in this file, and print each call as a line of JSON' },
  'tool-choice': { value: 'CHOICE', help: 'Whether it calls one: auto, required or the name of the tool' }
}

/** The options of vectors. */
export const EMBED: Table = {
  'task': { value: 'TASK', help: 'The use of the vectors: document, query, similarity or bitext' },
  'instruction': { value: 'TEXT', help: 'A sentence that describes another task' },
  'prefix': { value: 'TEXT', help: 'Put this before each text' },
  'dimensions': { value: 'N', help: 'Keep the first values of each vector' },
  'truncate': { help: 'Cut texts that are too long' }
}

/** Options that exclude one another. */
const CONFLICTS = [
  ['task', 'instruction'], ['task', 'prefix'], ['instruction', 'prefix'],
  ['thinking', 'no-thinking'], ['schema', 'json'], ['schema', 'regex'], ['json', 'regex'],
  ...['schema', 'json', 'regex', 'raw'].map(other => ['tools', other]),
  ...['thinking', 'no-thinking', 'max-thinking-tokens', 'template'].map(other => ['raw', other])
]

export type Given = Readonly<Record<string, string | boolean | string[] | undefined>>

/** Reads a command line by a table. Throws `Usage`. */
export function read(args: readonly string[], table: Table): { given: Given, rest: string[] } {
  const options = Object.fromEntries(Object.entries(table).map(([name, { value, many }]) =>
    [name, { type: value === undefined ? 'boolean' : 'string', multiple: many ?? false }] as const))
  let found
  try {
    found = parseArgs({ args: joined(args, table), options, allowPositionals: true })
  } catch (error) {
    throw new Usage((error as Error).message.split('\n')[0])
  }
  const given = found.values as Given
  for (const [one, other] of CONFLICTS) {
    if (one! in given && other! in given) throw new Usage(`--${one} and --${other} exclude one another`)
  }
  return { given, rest: found.positionals }
}

/** `--name -1` as `--name=-1`, because a value may begin with a minus. */
function joined(args: readonly string[], table: Table): string[] {
  const found: string[] = []
  for (let at = 0; at < args.length; at += 1) {
    const arg = args[at]!
    if (arg === '--') return [...found, ...args.slice(at)]
    const next = args[at + 1]
    const takes = arg.startsWith('--') && table[arg.slice(2)]?.value !== undefined
    if (takes && next !== undefined && (/^-[\d.]/.test(next) || arg === '--regex')) {
      found.push(`${arg}=${next}`)
      at += 1
    } else {
      found.push(arg)
    }
  }
  return found
}

/** A number. Its range is checked where it is used. */
export function numberOf(name: string, text: string): number {
  const number = Number(text)
  if (text.trim() === '' || Number.isNaN(number)) throw new Usage(`--${name} must be a number, not '${text}'`)
  return number
}

const NUMBERS = [
  'context', 'threads', 'max-gpu-bytes', 'dimensions', 'max-tokens', 'temperature', 'top-k', 'top-p', 'min-p', 'repeat-penalty', 'presence-penalty',
  'frequency-penalty', 'seed', 'max-thinking-tokens'
]

/** The name that the package has for an option. */
const camel = (name: string): string => name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase())

/** The options of the command line in the words of a message of the package. */
export const kebab = (message: string): string => message.replace(/^bad option `(\w+)`/, (_, name: string) =>
  `bad option \`--${name.replace(/[A-Z]/g, letter => `-${letter.toLowerCase()}`)}\``)

/** The options of `given` that are in `table`, as the package takes them. */
function plain(given: Given, table: Table): Record<string, unknown> {
  const names = Object.keys(table).filter(name => given[name] !== undefined)
  const entries = names.map(name => {
    const value = given[name]
    return [camel(name), NUMBERS.includes(name) ? numberOf(name, value as string) : value]
  })
  return Object.fromEntries(entries)
}

/** The model and the options of its load. Throws `Usage`. */
export function loadOf(given: Given): { source: string, options: LoadOptions } {
  const { model, adapter, maxGpuBytes, ...options } = plain(given, LOAD)
  if (typeof model !== 'string') throw new Usage('the model is missing: --model FILE or URL')
  const adapters = (adapter as string[] | undefined)?.map(scaled)
  return {
    source: model,
    options: {
      ...options,
      ...(adapters ? { adapters } : {}),
      ...(maxGpuBytes === undefined ? {} : { gpu: { maxBytes: maxGpuBytes as number } })
    }
  }
}

/** An adapter and its scale. A path may have an equals sign too. */
function scaled(text: string): LoadedAdapter {
  const [, source, scale] = /^(.+)=([-+]?[\d.]+(?:e[-+]?\d+)?)$/i.exec(text) ?? []
  return source === undefined ? { source: text } : { source, scale: numberOf('adapter', scale!) }
}

/** The options of vectors. Throws `Usage`. */
export const embedOf = (given: Given): EmbedOptions => plain(given, EMBED)

/** The options of answers. Throws `Usage`. */
export function answersOf(given: Given): GenerateOptions {
  const { thinking, noThinking, logitBias, promptLookup, ...options } = plain(given, GENERATE)
  return {
    ...options,
    ...(thinking || noThinking ? { thinking: thinking === true } : {}),
    ...(logitBias ? { logitBias: Object.fromEntries((logitBias as string[]).map(bias)) } : {}),
    ...(promptLookup !== undefined ? { promptLookup: truth('prompt-lookup', promptLookup as string) } : {})
  }
}

function bias(text: string): [string, number] {
  const [, id, value] = /^(\d+)=(.+)$/.exec(text) ?? []
  if (id === undefined) throw new Usage(`--logit-bias must be ID=BIAS, not '${text}'`)
  return [id, numberOf('logit-bias', value!)]
}

function truth(name: string, text: string): boolean {
  if (text !== 'true' && text !== 'false') throw new Usage(`--${name} must be true or false, not '${text}'`)
  return text === 'true'
}

/** The options of a single answer. Throws `Usage`. */
export function answerOf(given: Given): GenerateOptions {
  const { raw, schema, json, regex, tools, 'tool-choice': choice } = given
  const options: GenerateOptions = { ...answersOf(given), ...(raw ? { raw: true } : {}) }
  if (schema !== undefined) options.responseFormat = { type: 'json_schema', schema: fileOf<object>('schema', schema) as never }
  if (json) options.responseFormat = { type: 'json_object' }
  if (regex !== undefined) options.responseFormat = { type: 'regex', pattern: regex as string }
  if (choice !== undefined && tools === undefined) throw new Usage('--tool-choice needs --tools')
  if (tools === undefined) return options
  options.tools = fileOf<Tool[]>('tools', tools)
  if (choice !== undefined) {
    options.toolChoice = choice === 'auto' || choice === 'required' ? choice : { name: choice as string }
  }
  return options
}

/** The JSON in the file that an option names. */
function fileOf<T>(name: string, path: unknown): T {
  try {
    return JSON.parse(readFileSync(path as string, 'utf8')) as T
  } catch (error) {
    throw new Usage(`--${name} ${path}: ${(error as Error).message}`)
  }
}

/** The lines of a help text. */
export const described = (table: Table): string =>
  Object.entries(table).map(([name, { value, help }]) => {
    const option = `  --${name}${value ? ` <${value}>` : ''}`
    return option.length < 30 ? `${option.padEnd(30)}${help}` : `${option}\n${' '.repeat(30)}${help}`
  }).join('\n')
