import { badOption, checkMessages, checkOptions, checkSignal, checkText, signalOf } from '../check.js'
import { unlessAborted } from './abort.js'
import { fetched } from '../error.js'
import { Generation } from '../generation.js'
import type { Start } from '../generation.js'
import { copies, firstSaid, without } from './said.js'
import type {
  AbortOptions, ChatDefaults, ChatOptions, CountOptions, GenerateOptions, Message, Token, ToolCall, TurnOptions
} from '../types.js'

/** The part of a model that a chat needs. */
export interface ChatModel {
  /**
   * Starts a run. `input` is called when the run begins, and not when it is queued, because its
   * input includes the answers before it.
   */
  start(input: () => Promise<readonly Message[]>, options: GenerateOptions): Start
  /** The tokens of a conversation with the tools in `options`. */
  count(messages: readonly Message[], options: CountOptions): Promise<number>
  /** Saves a conversation with its keys and values from the KV cache, and a note. */
  save(messages: readonly Message[], note: string, signal?: AbortSignal): Promise<Blob>
  /** The most tokens of prompt and answer together. */
  contextLength: number
}

/** The names of the options that a chat keeps for its turns. */
export const DEFAULTS = Object.keys({
  maxTokens: 0, thinking: 0, maxThinkingTokens: 0, temperature: 0, topK: 0, topP: 0, minP: 0,
  repeatPenalty: 0, presencePenalty: 0, frequencyPenalty: 0, logitBias: 0, logprobs: 0, seed: 0, stop: 0,
  promptLookup: 0
} satisfies Record<keyof ChatDefaults, 0>)

/** The saved form of a chat, as JSON, without its keys and values. */
export interface Note {
  /** The messages with which the chat was created. */
  before: readonly Message[]
  /** All messages. */
  said: readonly Message[]
  dropped: number
  overflow: NonNullable<ChatOptions['overflow']>
  defaults: ChatDefaults
}

/** The request to the model in one turn. */
interface Turn {
  /** The conversation up to where the answer begins. Called when the turn's run begins. */
  input: () => Message[]
  /** The beginning of the answer. Called after `input`. */
  begun: () => string
  /**
   * Puts the whole answer into the conversation; undefined if there is none. `isStopped` says that
   * it was stopped. Returns whether the answer is kept.
   */
  end: (answer: Message | undefined, isStopped: boolean) => boolean
}

/**
 * A conversation. Its beginning stays computed on the GPU, so that each turn computes only its new
 * tokens. Made by `model.createChat()`.
 *
 * Turns wait for those before them. If one is given options that are no object, it throws
 * `bad-option`. Any other failure rejects the readers of its answer: `bad-option` for a wrong
 * option, `context-full` if the conversation is too long, `bad-template`, `device-lost`,
 * `disposed`. A turn that fails changes nothing in the conversation.
 */
export class Chat {
  #model: ChatModel
  #overflow: NonNullable<ChatOptions['overflow']>
  #defaults: ChatDefaults
  /** How many messages after the system's are left out. */
  #dropped = 0
  /** The messages with which the conversation was created. */
  #before: readonly Message[]
  /** All messages, each an object of its own. */
  #said: Message[]
  /**
   * The messages whose answers have not come yet, with those that each of them replaces. Without an
   * answer a message is forgotten, and these come back.
   */
  #open = new Map<Message, readonly Message[]>()
  /** The end of the last answer. */
  #last: Promise<unknown> = Promise.resolve()

  /** @internal */
  constructor(
    model: ChatModel, before: readonly Message[], overflow: ChatOptions['overflow'] = 'error',
    defaults: ChatDefaults = {}, said = before
  ) {
    this.#model = model
    this.#before = before
    this.#overflow = overflow
    this.#defaults = defaults
    this.#said = copies(said)
  }

  /**
   * The messages so far, as copies. The first ones are those with which the chat was created.
   * Messages that the model does not see any more, because of `overflow: 'slide'`, are included.
   */
  get messages(): Message[] {
    return copies(this.#said)
  }

  /**
   * Sends a message and generates the answer. An array is the results of the calls of tools with which
   * the last answer has ended: messages of the role `tool`.
   *
   * When the answer ends, it becomes part of the conversation, with its `prefix`. If it was stopped,
   * the text so far becomes part of it. The reasoning does not, so the model does not see it again.
   * An answer that the model has ended at once is one without text. If an answer failed, was stopped or
   * cut off before its first text, what was sent is forgotten.
   *
   * Throws `bad-option` for a text that is no string; see `Chat` for other failures.
   */
  send(text: string | readonly Message[], options: TurnOptions = {}): Generation {
    return this.#ask(asked(text), this.#said.length, options)
  }

  /**
   * Answers the last message of the user again. The new answer replaces the old one when it has
   * ended. If it fails or is stopped, or if the old answer is edited meanwhile, that one stays. If
   * there is no answer yet, as in a chat that was created with a question, this generates it.
   *
   * Throws `bad-option` if the conversation does not end with a message of the user or an answer to
   * one; see `Chat` for other failures.
   */
  regenerate(options: TurnOptions = {}): Generation {
    const user = this.#said.at(this.#said.at(-1)?.role === 'assistant' ? -2 : -1)
    if (user?.role !== 'user' && user?.role !== 'tool') throw badOption('regenerate', 'there is no message to answer again')
    let old: Message | undefined
    return this.#turn(options, prefix => ({
      input: () => {
        if (!this.#said.includes(user)) throw badOption('regenerate', 'its message is forgotten')
        old = this.#answerTo(user)
        return this.#until([user])
      },
      begun: () => prefix,
      end: (answer, isStopped) => {
        const at = this.#said.indexOf(user)
        // The caller may have edited the old answer meanwhile.
        if (!answer || isStopped || at < 0 || this.#answerTo(user) !== old) return false
        if (old) replace(old, answer)
        else this.#said.splice(at + 1, 0, answer)
        return true
      }
    }))
  }

  /**
   * Replaces the text of the message at `index` in `messages`.
   *
   * For a message of the user or a result of a tool, everything after it is dropped, but for the other
   * results of the same calls, and it is answered again: the returned generation is the answer. If that fails, or is stopped before its first text, the
   * conversation is as before. For an answer, everything after it is dropped too, and nothing is
   * generated: `continue()` lets it go on, `send()` asks the next question. For a message of the
   * system, everything else stays. The model sees the new text from the next turn on.
   *
   * If a later message is still being answered, it is dropped too. Its answer comes, but the chat
   * forgets it.
   *
   * Throws `bad-option` for an index without a message and for a text that is no string; see `Chat`
   * for other failures.
   */
  edit(index: number, content: string, options: TurnOptions = {}): Generation | undefined {
    checkText('content', content)
    checkOptions(options)
    const old = Number.isInteger(index) ? this.#said[index] : undefined
    if (!old) throw badOption('index', `must be that of one of the ${this.#said.length} messages`)
    const { role } = old
    if (role === 'user') return this.#ask([{ role, content }], index, options)
    if (role === 'tool') {
      const isTool = (n: number) => this.#said[n]?.role === role
      let [from, to] = [index, index]
      while (isTool(from - 1)) from--
      while (isTool(++to));
      const results = copies(this.#said.slice(from, to))
      results[index - from]!.content = content
      return this.#ask(results, from, options)
    }
    if (role === 'system') this.#said[index] = { role, content }
    else this.#cut(index, { ...old, content })
    return
  }

  /**
   * Lets the last answer go on from where it ended, because it was stopped, or ended by `maxTokens`
   * or a `stop` text. The generation is the rest; in the conversation, the two are one answer. If
   * it is stopped, the text so far is added. A model that had ended its answer by itself may end it
   * again at once. With a `responseFormat`, the two together keep to it.
   *
   * Throws `bad-option` if the conversation does not end with an answer, or if that has called tools:
   * `send` their results instead. See `Chat` for other failures.
   */
  continue(options: GenerateOptions = {}): Generation {
    const none = () => badOption('continue', 'there is no answer that could go on')
    const called = () => badOption('continue', 'the answer has called tools: send their results')
    const last = this.#said.at(-1)
    const isAnswer = last?.role === 'assistant'
    if (!last || !isAnswer && !this.#open.has(last)) throw none()
    if (last.toolCalls) throw called()
    let answer: Message
    let begun = ''
    return this.#turn(options, () => ({
      input: () => {
        const found = isAnswer ? last : this.#answerTo(last)
        const index = found ? this.#said.indexOf(found) : -1
        if (!found || index < 0) throw none()
        if (found.toolCalls) throw called()
        answer = found
        // A character of which only some tokens came is generated again.
        begun = found.content.replace(/\uFFFD+$/, '')
        return this.#said.slice(0, index)
      },
      begun: () => begun,
      end: whole => {
        if (!whole || !this.#said.includes(answer)) return false
        replace(answer, whole)
        return true
      }
    }), true)
  }

  /**
   * Saves the conversation, with its keys and values if the GPU still has them. Instead of a message
   * without an answer, those that it replaces are saved. `model.restoreChat()` makes a chat of it
   * again, even after the page was reloaded. It takes about as many bytes as the conversation has in
   * the KV cache: `info.cacheBytes` for a whole context. Waits for the answers that run.
   *
   * Rejects with `device-lost`, `disposed`, or the reason of `signal`.
   */
  async save(options: AbortOptions = {}): Promise<Blob> {
    const signal = signalOf(options)
    await unlessAborted(signal, () => this.#last)
    const note: Note = {
      before: this.#before, said: copies(this.#answered(this.#said)), dropped: this.#dropped,
      overflow: this.#overflow, defaults: this.#defaults
    }
    return this.#model.save(without(note.said, this.#dropped), JSON.stringify(note), signal)
  }

  /**
   * The chat that a note describes.
   * @internal
   */
  static restored(model: ChatModel, { before, said, dropped, overflow, defaults }: Note): Chat {
    const chat = new Chat(model, before, overflow, defaults, said)
    chat.#dropped = dropped
    return chat
  }

  /** Forgets everything except the messages with which the chat was created. */
  reset(): void {
    this.#dropped = 0
    this.#said = copies(this.#before)
  }

  /**
   * Copies the conversation as it is now. The two go on independently. Instead of a message without
   * an answer, those that it replaces are copied.
   */
  fork(): Chat {
    const said = this.#answered(this.#said)
    const chat = new Chat(this.#model, this.#before, this.#overflow, this.#defaults, said)
    chat.#dropped = this.#dropped
    return chat
  }

  /** Puts messages in place of all from `index` on, and answers them. */
  #ask(asked: Message[], index: number, options: TurnOptions): Generation {
    const wasDropped = this.#dropped
    return this.#turn(options, prefix => {
      const old = this.#answered(this.#cut(index, ...asked))
      asked.forEach((message, n) => this.#open.set(message, n === 0 ? old : []))
      return {
        input: () => this.#until(asked),
        begun: () => prefix,
        end: answer => {
          asked.forEach(message => this.#open.delete(message))
          const at = this.#said.indexOf(asked[0]!)
          // After a reset the message is in no conversation.
          if (at < 0) return false
          if (answer) {
            this.#said.splice(at + asked.length, 0, answer)
            return true
          }
          this.#said.splice(at, asked.length, ...old)
          if (old.length) this.#dropped = wasDropped
          return false
        }
      }
    })
  }

  /** Puts messages in place of all from `index` on. Returns these. */
  #cut(index: number, ...messages: Message[]): Message[] {
    // Messages that are left out may have room again.
    if (index < firstSaid(this.#said) + this.#dropped) this.#dropped = 0
    return this.#said.splice(index, Infinity, ...messages)
  }

  /**
   * Generates the answer of a turn, after those before it. `begin` gets the `prefix` and makes the
   * turn, once the options are checked. `isBegun` says that the answer is begun without a prefix.
   */
  #turn(options: TurnOptions, begin: (prefix: string) => Turn, isBegun = false): Generation {
    checkOptions(options)
    // An absent option and one that is undefined are the same.
    const given = Object.entries(options).filter(([, value]) => value !== undefined)
    const { signal, prefix, ...rest }: TurnOptions = Object.fromEntries(given)
    checkSignal(signal)
    const hasPrefix = prefix !== undefined
    if (hasPrefix) checkText('prefix', prefix)
    if (isBegun && hasPrefix) throw badOption('prefix', 'the answer is begun already')
    const merged: GenerateOptions = { ...this.#defaults, ...rest }
    // There is no reasoning before an answer that is begun.
    if (isBegun || hasPrefix) merged.thinking = rest.thinking
    const turn = begin(prefix ?? '')
    let dropped = 0
    const input = async () => {
      const messages = turn.input()
      const content = turn.begun()
      if (content || hasPrefix) messages.push({ role: 'assistant', content, prefix: true })
      if (this.#overflow === 'error') return messages
      const { seen } = await fetched(() => import('./slide.js'))
      const left = await seen(this.#model, messages, this.#dropped, merged)
      dropped = left.dropped
      return left.messages
    }
    const run = this.#model.start(input, merged)
    return new Generation((onToken, stop) => {
      const answer = this.#last.then(async () => {
        let text = ''
        const parts: Token[] = []
        let toolCalls: ToolCall[] | undefined
        let hasFailed = true
        let isEnded = false
        try {
          // The script that reads calls is fetched first: if that fails, no answer is lost.
          if (merged.tools) await values()
          const stats = await run(token => {
            // Text that comes after the stop is not shown.
            if (!stop.aborted && token.channel === 'answer') text += token.text
            if (token.call) parts.push(token)
            onToken(token)
          }, stop)
          // A call that is cut off is no part of the conversation.
          if (stats.finishReason === 'tool-calls') toolCalls = await (await values()).callsOf(parts)
          hasFailed = false
          isEnded = stats.finishReason === 'stop' && !parts.length && !stop.aborted
          return this.#overflow === 'slide' ? { ...stats, droppedMessages: dropped } : stats
        } finally {
          // A model may find that the beginning is the whole answer.
          const isNone = hasFailed || (stop.aborted && !text)
          const content = isNone ? '' : turn.begun() + text
          const answer: Message = { role: 'assistant', content, ...(toolCalls && { toolCalls }) }
          if (turn.end(content || toolCalls || isEnded ? answer : undefined, stop.aborted)) this.#dropped = dropped
        }
      })
      this.#last = answer.catch(() => {})
      return answer
    }, signal, turn.begun)
  }

  /**
   * The conversation up to a question. Earlier questions without an answer have failed and are left
   * out. If a reset has removed the question, it comes after all others.
   */
  #until(asked: Message[]): Message[] {
    const earlier = this.#said.indexOf(asked[0]!)
    return [...this.#answered(this.#said.slice(0, earlier < 0 ? undefined : earlier)), ...asked]
  }

  /** The answer to a message; undefined if there is none, or if the message is forgotten. */
  #answerTo(user: Message): Message | undefined {
    const at = this.#said.indexOf(user)
    const next = at < 0 ? undefined : this.#said[at + 1]
    return next?.role === 'assistant' ? next : undefined
  }

  /** The messages. Where one waits for its answer, those that it replaces are there instead. */
  #answered(messages: readonly Message[]): Message[] {
    return messages.flatMap(message => this.#open.get(message) ?? [message])
  }
}

/** The script that reads calls. */
const values = () => fetched(() => import('../values.js'))

/** Puts an answer in place of another, which stays the same object. */
function replace(old: Message, answer: Message): void {
  delete old.toolCalls
  Object.assign(old, answer)
}

/** The messages to send: a text of the user, or results of tools. */
function asked(sent: string | readonly Message[]): Message[] {
  if (!Array.isArray(sent)) {
    checkText('text', sent)
    return [{ role: 'user', content: sent as string }]
  }
  checkMessages(sent)
  if (sent.length && sent.every(({ role }) => role === 'tool')) return copies(sent)
  throw badOption('text', 'must be results')
}
