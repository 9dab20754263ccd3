// The output of a response, and the events that tell how it grows.
import { CHAT_FORM, hasLogprob, Offsets } from './response.js'
import { newId } from '../ids.js'
import type {
  ResponseEvent, ResponseFunctionCall, ResponseItemStatus, ResponseLogprob, ResponseOutputItem,
  ResponseOutputMessage, ResponseOutputText, ResponseReasoningItem, ResponseReasoningText
} from './responses-types.js'
import type { Token } from '../types.js'

/** Leaves the number out of each kind of event. */
type Without<Event> = Event extends unknown ? Omit<Event, 'sequence_number'> : never

/** An event that has no number yet. */
export type Unnumbered = Without<ResponseEvent>

type Part = ResponseOutputText | ResponseReasoningText

/** A kind of item with a text, by the channel of its tokens. */
interface Kind {
  /** The prefix of ids. */
  id: string
  /** The type of its part, after which events are named. */
  type: Part['type']
  part(text: string, logprobs: ResponseLogprob[]): Part
  item(id: string, status: ResponseItemStatus, content: Part[]): ResponseOutputItem
}

/** The channels of texts. */
type Channel = Exclude<Token['channel'], 'call'>

const KINDS: Record<Channel, Kind> = {
  answer: {
    id: 'msg_',
    type: 'output_text',
    part: (text, logprobs) => ({ type: 'output_text', text, annotations: [], logprobs }),
    item: (id, status, content) =>
      ({ id, type: 'message', role: 'assistant', status, content } as ResponseOutputMessage)
  },
  reasoning: {
    id: 'rs_',
    type: 'reasoning_text',
    part: text => ({ type: 'reasoning_text', text }),
    item: (id, status, content) =>
      ({ id, type: 'reasoning', status, summary: [], content } as ResponseReasoningItem)
  }
}

/** An item of the output, which grows by tokens. It gives the events that tell the client so. */
interface Item {
  /** The channel of its tokens; undefined of a call. */
  readonly channel?: Channel
  /** The events of its beginning. */
  begin(): Unnumbered[]
  /** Adds a token. */
  add(token: Token): Unnumbered[]
  /** The events of its end. */
  end(status: ResponseItemStatus): Unnumbered[]
  whole(status: ResponseItemStatus): ResponseOutputItem
}

/** The output of a response as it grows. Each method changes it, and gives the events of the change. */
export class Output {
  /** The items that have ended. */
  readonly items: ResponseOutputItem[] = []
  /** The item that grows. */
  #item: Item | undefined

  /** Whether no item has begun. */
  get isEmpty(): boolean {
    return !this.#item && this.items.length === 0
  }

  /** Whether a call has begun and not ended. */
  get isCalling(): boolean {
    return this.#item instanceof CallItem
  }

  /** Begins an item of this channel, unless the one that grows is of it. */
  begin(channel: Channel): Unnumbered[] {
    if (this.#item?.channel === channel) return []
    return this.#next(index => new TextItem(channel, index))
  }

  /** Adds a token. Some tokens of calls only begin or end them. */
  add(token: Token): Unnumbered[] {
    const { text, channel, call } = token
    if (channel !== 'call') return [...this.begin(channel), ...this.#item!.add(token)]
    const { id = '', name, ends } = call!
    const begun = name === undefined ? [] : this.#next(index => new CallItem(index, id, name))
    const added = text ? this.#item!.add(token) : []
    return [...begun, ...added, ...ends ? this.end('completed') : []]
  }

  /** Ends the item that grows. */
  end(status: ResponseItemStatus): Unnumbered[] {
    const item = this.#item
    if (!item) return []
    this.#item = undefined
    this.items.push(item.whole(status))
    return item.end(status)
  }

  /** Begins an item, after the one before. */
  #next(make: (index: number) => Item): Unnumbered[] {
    const ended = this.end('completed')
    this.#item = make(this.items.length)
    return [...ended, ...this.#item.begin()]
  }
}

/** A message or a reasoning. It has one part. */
class TextItem implements Item {
  readonly channel: Channel
  #kind: Kind
  #id: string
  #index: number
  #text = ''
  #logprobs: ResponseLogprob[] = []

  constructor(channel: Channel, index: number) {
    this.channel = channel
    this.#kind = KINDS[channel]
    this.#id = newId(this.#kind.id)
    this.#index = index
  }

  begin(): Unnumbered[] {
    const item = this.#kind.item(this.#id, 'in_progress', [])
    return [
      { type: 'response.output_item.added', output_index: this.#index, item },
      { type: 'response.content_part.added', ...this.#place, part: this.#kind.part('', []) }
    ]
  }

  add(token: Token): Unnumbered[] {
    const logprobs = hasLogprob(token) ? logprobsOf(token) : []
    this.#text += token.text
    this.#logprobs.push(...logprobs)
    return [this.#said('delta', { delta: token.text }, logprobs)]
  }

  end(status: ResponseItemStatus): Unnumbered[] {
    return [
      this.#said('done', { text: this.#text }, this.#logprobs),
      { type: 'response.content_part.done', ...this.#place, part: this.#part },
      { type: 'response.output_item.done', output_index: this.#index, item: this.whole(status) }
    ]
  }

  whole(status: ResponseItemStatus): ResponseOutputItem {
    return this.#kind.item(this.#id, status, [this.#part])
  }

  get #part(): Part {
    return this.#kind.part(this.#text, this.#logprobs)
  }

  get #place() {
    return { item_id: this.#id, output_index: this.#index, content_index: 0 }
  }

  #said(step: 'delta' | 'done', text: object, logprobs: ResponseLogprob[]): Unnumbered {
    const { type } = this.#kind
    const withLogprobs = type === 'output_text' ? { ...text, logprobs } : text
    return { type: `response.${type}.${step}`, ...this.#place, ...withLogprobs } as Unnumbered
  }
}

/** A call of a tool. */
class CallItem implements Item {
  #place: { item_id: string, output_index: number }
  #call: Pick<ResponseFunctionCall, 'call_id' | 'name'>
  #arguments = ''

  constructor(index: number, id: string, name: string) {
    this.#place = { item_id: newId('fc_'), output_index: index }
    this.#call = { call_id: id, name }
  }

  begin(): Unnumbered[] {
    return [this.#told('added', 'in_progress')]
  }

  add({ text }: Token): Unnumbered[] {
    this.#arguments += text
    return [{ type: 'response.function_call_arguments.delta', ...this.#place, delta: text }]
  }

  end(status: ResponseItemStatus): Unnumbered[] {
    const said = { type: 'response.function_call_arguments.done', ...this.#place, arguments: this.#arguments } as const
    return [said, this.#told('done', status)]
  }

  whole(status: ResponseItemStatus): ResponseFunctionCall {
    return { id: this.#place.item_id, type: 'function_call', status, ...this.#call, arguments: this.#arguments }
  }

  #told(step: 'added' | 'done', status: ResponseItemStatus): Unnumbered {
    return { type: `response.output_item.${step}`, output_index: this.#place.output_index, item: this.whole(status) }
  }
}

/** The log-probability of a token, and of the likeliest ones at its position. */
const logprobsOf = (token: Token): ResponseLogprob[] =>
  CHAT_FORM.logprobs([token], new Offsets()).content.map(found => ({
    ...known(found), top_logprobs: found.top_logprobs.map(known)
  }))

/** The bytes of a part of a character are not known. */
const known = <Logprob extends { bytes: number[] | null }>(logprob: Logprob) =>
  ({ ...logprob, bytes: logprob.bytes ?? [] })
