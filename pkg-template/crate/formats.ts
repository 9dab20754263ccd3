// Formats of answers. They are decided in a WebAssembly module of its own, `grammar.wasm`, which is
// fetched when a thread needs it for the first time. `src/grammar/module.rs` says how it is called.
import { BitNetError } from '../error.js'
import { platform } from '../platform.js'
import type { Grammar, Matcher, WasmModel } from '../tritloom.js'

/** The kinds of formats, by the numbers that the module knows them by. */
const KINDS = ['json_schema', 'json_object', 'regex', 'lark', 'calls'] as const

/** A format that can be posted to a worker: its kind, and its text unless it is `json_object`. */
export interface Format {
  kind: typeof KINDS[number]
  text: string
}

/** The options that give formats, if it is not `responseFormat` itself. */
const OPTIONS: Partial<Record<Format['kind'], string>> = {
  json_schema: 'responseFormat.schema', calls: 'tools'
}

/** A format that is held while a call uses it. */
export interface Held {
  grammar: Grammar
  release(): void
}

/** The part of a model that the module needs. */
type Tokens = Pick<WasmModel, 'vocabulary' | 'encodeWithin'>

interface Exports {
  memory: WebAssembly.Memory
  input(bytes: number): number
  text(): number
  text_len(): number
  words(): number
  words_len(): number
  vocabulary(): number
  grammar(kind: number): number
  free_grammar(grammar: number): void
  matcher(grammar: number): number
  fork(matcher: number): number
  free_matcher(matcher: number): void
  take(matcher: number, id: number): number
  follow(matcher: number): number
}

/** Formats that are kept for the next call when no call uses them. */
const KEPT = 8

/** The memory of a module never shrinks. With so much, the module goes when no call uses it. */
const LARGE = 256 << 20

/** The most memory of a module. The call for which it would grow further fails. */
const MOST = 1 << 30

/** The codes of the module's errors, which are negative numbers. */
const CODES = ['bad-option', 'unsupported-model', 'internal'] as const

let compiling: Promise<WebAssembly.Module> | undefined

async function compile(): Promise<WebAssembly.Module> {
  try {
    if (platform.asset) return await WebAssembly.compile(await platform.asset('crate/grammar.wasm'))
    const response = await fetch(new URL('./grammar.wasm', import.meta.url))
    if (!response.ok) throw new Error(`status ${response.status}`)
    return await WebAssembly.compile(await response.arrayBuffer())
  } catch (cause) {
    compiling = undefined
    const why = cause instanceof Error ? cause.message : cause
    throw new BitNetError('network', `could not load grammar.wasm: ${why}`, { cause })
  }
}

const formats = new WeakMap<Tokens, Promise<Formats>>()
/** Those of them that are here already. */
const ready = new WeakSet<Promise<Formats>>()

/** The formats of a model. Its vocabulary is read once, which takes about a second. */
export function formatsOf(model: Tokens): Promise<Formats> {
  const known = formats.get(model)
  if (known) return known
  const made = (compiling ??= compile()).then(module => Formats.of(module, model))
  formats.set(model, made)
  const forget = () => { if (formats.get(model) === made) formats.delete(model) }
  made.then(instance => {
    // The next call makes a new instance.
    instance.onCrash = instance.onLarge = forget
    ready.add(made)
  }, forget)
  return made
}

/** Whether the formats of a model are ready, so that a call need not wait for them. */
export function hasFormats(model: Tokens): boolean {
  const made = formats.get(model)
  return made !== undefined && ready.has(made)
}

// Without `ignoreBOM` it would leave out U+FEFF at the beginning of a text.
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

/** An instance of the module, with the vocabulary of one model. */
export class Formats {
  onCrash: (() => void) | undefined
  /** Called when it has taken much memory and no call uses it any more, or when it wants too much. */
  onLarge: (() => void) | undefined
  /** After a crash it must not be called any more. */
  #hasCrashed = false
  #exports: Exports
  /** The grammars by kind and text, those that were used last at the end. */
  #grammars = new Map<string, { number: number, users: number }>()

  private constructor(exports: Exports) {
    this.#exports = exports
  }

  static async of(module: WebAssembly.Module, model: Tokens): Promise<Formats> {
    let exports!: Exports
    let ids: Uint32Array = new Uint32Array()
    const env = {
      now: () => performance.now(),
      encode: (text: number, bytes: number) => {
        ids = model.encodeWithin(decoder.decode(new Uint8Array(exports.memory.buffer, text, bytes)))
        return ids.length
      },
      encoded: (at: number) => new Uint32Array(exports.memory.buffer, at, ids.length).set(ids)
    }
    const vocabulary = model.vocabulary()
    try {
      const instance = await WebAssembly.instantiate(module, { env })
      exports = instance.exports as unknown as Exports
    } catch (cause) {
      throw new BitNetError('internal', `the grammar cannot be started: ${cause}`, { cause })
    }
    const made = new Formats(exports)
    made.#prepare(vocabulary, () => exports.vocabulary(), 'responseFormat')
    return made
  }

  /** Prepares a format, unless it is prepared already. Throws `bad-option` if it cannot be met. */
  hold({ kind, text }: Format): Held {
    const key = `${kind} ${text}`
    const entry = this.#grammars.get(key) ?? { number: this.#grammar(kind, text), users: 0 }
    this.#grammars.delete(key)
    this.#grammars.set(key, entry)
    entry.users += 1
    return {
      grammar: { matcher: begun => this.#matcher(entry.number, begun) },
      release: () => {
        entry.users -= 1
        this.#forget()
        const isUsed = [...this.#grammars.values()].some(({ users }) => users > 0)
        if (!isUsed && this.#exports.memory.buffer.byteLength > LARGE) this.onLarge?.()
      }
    }
  }

  #grammar(kind: Format['kind'], text: string): number {
    const option = OPTIONS[kind] ?? 'responseFormat'
    const input = new TextEncoder().encode(text)
    return this.#prepare(input, () => this.#exports.grammar(KINDS.indexOf(kind)), option)
  }

  /** Calls the module with an input. Throws the error for the page if `option` is at fault. */
  #prepare(input: Uint8Array, work: () => number, option: string): number {
    try {
      return this.#call(() => {
        this.#write(input)
        return work()
      })
    } catch (error) {
      throw told(error, option)
    }
  }

  /** Lets the oldest grammars go that no call uses. */
  #forget(): void {
    if (this.#hasCrashed) return
    for (const [key, { number, users }] of this.#grammars) {
      if (this.#grammars.size <= KEPT) return
      if (users > 0) continue
      this.#grammars.delete(key)
      this.#exports.free_grammar(number)
    }
  }

  #matcher(grammar: number, begun: string): Matcher {
    return this.#numbered(this.#call(() => {
      this.#write(new TextEncoder().encode(begun))
      return this.#exports.matcher(grammar)
    }))
  }

  #numbered(number: number): Matcher {
    const exports = this.#exports
    return {
      take: id => { this.#call(() => exports.take(number, id)) },
      follow: () => {
        const follow = this.#call(() => exports.follow(number))
        if (follow === 0) return undefined
        const words = new Uint32Array(exports.memory.buffer, exports.words(), exports.words_len())
        return follow === 1 ? words.slice() : [...words]
      },
      fork: () => this.#numbered(this.#call(() => exports.fork(number))),
      free: () => { if (!this.#hasCrashed) exports.free_matcher(number) }
    }
  }

  #write(bytes: Uint8Array): void {
    const at = this.#exports.input(bytes.length)
    new Uint8Array(this.#exports.memory.buffer, at, bytes.length).set(bytes)
  }

  /** Calls the module. Throws an error whose name is the code. */
  #call(work: () => number): number {
    if (this.#hasCrashed) throw failure('internal', 'the grammar has crashed')
    const { memory, text, text_len } = this.#exports
    const bytes = memory.buffer.byteLength
    let result: number
    try {
      result = work()
    } catch (cause) {
      this.#hasCrashed = true
      this.onCrash?.()
      throw failure('internal', `the grammar has crashed: ${cause}`)
    }
    if (memory.buffer.byteLength > Math.max(bytes, MOST)) {
      this.onLarge?.()
      throw failure('bad-option', 'it is too complex: the formats in use take more than 1 GiB')
    }
    if (result >= 0) return result
    const said = decoder.decode(new Uint8Array(memory.buffer, text(), text_len()))
    throw failure(CODES[-result - 1]!, said)
  }
}

const failure = (name: typeof CODES[number], message: string): Error =>
  Object.assign(new Error(message), { name })

/** The error for the page when a call of the module has thrown `error`. */
const told = (error: unknown, option: string): BitNetError => {
  const { name, message } = error as { name: typeof CODES[number], message: string }
  return new BitNetError(name, name === 'bad-option' ? `bad option \`${option}\`: ${message}` : message)
}
