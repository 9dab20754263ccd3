// The output of a response, and the events that tell how it grows.
import { CHAT_FORM, hasLogprob, newId, Offsets } from './response.js'
import type {
  ResponseEvent, ResponseItemStatus, ResponseLogprob, ResponseOutputItem, ResponseOutputMessage,
  ResponseOutputText, ResponseReasoningItem, ResponseReasoningText
} from './responses-types.js'
import type { Token } from '../types.js'

/** Leaves the number out of each kind of event. */
type Without<Event> = Event extends unknown ? Omit<Event, 'sequence_number'> : never

/** An event that has no number yet. */
export type Unnumbered = Without<ResponseEvent>

type Part = ResponseOutputText | ResponseReasoningText

/** A kind of item, by the channel of its tokens. */
interface Kind {
  /** The prefix of ids. */
  id: string
  /** The type of its part, after which events are named. */
  type: Part['type']
  part(text: string, logprobs: ResponseLogprob[]): Part
  item(id: string, status: ResponseItemStatus, content: Part[]): ResponseOutputItem
}

/** The channels that responses have: no tools are given to the model. */
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

/** The output of a response as it grows. Each method changes it, and gives the events of the change. */
export class Output {
  /** The items that have ended. */
  readonly items: ResponseOutputItem[] = []
  #item: Item | undefined

  /** Whether no item has begun. */
  get isEmpty(): boolean {
    return !this.#item
  }

  /** Begins an item of this channel, unless the last one is of it. The one before has ended. */
  begin(channel: Channel): Unnumbered[] {
    if (this.#item?.channel === channel) return []
    const ended = this.end('completed')
    this.#item = new Item(channel, this.items.length)
    return [...ended, ...this.#item.begin()]
  }

  /** Adds a token. */
  add(token: Token): Unnumbered[] {
    const { channel } = token
    return channel === 'call' ? [] : [...this.begin(channel), ...this.#item!.add(token)]
  }

  /** Ends the last item. */
  end(status: ResponseItemStatus): Unnumbered[] {
    if (!this.#item) return []
    this.items.push(this.#item.whole(status))
    return this.#item.end(status)
  }
}

/** An item as it grows. It has one part. Its fields that events have never change. */
class Item {
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

  /** The events of its beginning. */
  begin(): Unnumbered[] {
    const item = this.#kind.item(this.#id, 'in_progress', [])
    return [
      { type: 'response.output_item.added', output_index: this.#index, item },
      { type: 'response.content_part.added', ...this.#place, part: this.#kind.part('', []) }
    ]
  }

  /** Adds a token. */
  add(token: Token): Unnumbered[] {
    const logprobs = hasLogprob(token) ? logprobsOf(token) : []
    this.#text += token.text
    this.#logprobs.push(...logprobs)
    return [this.#said('delta', { delta: token.text }, logprobs)]
  }

  /** The events of its end. */
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
    const told = type === 'output_text' ? { ...text, logprobs } : text
    return { type: `response.${type}.${step}`, ...this.#place, ...told } as Unnumbered
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
