// The types of `model.inspect`, and of the weights of a file.
import type { AbortOptions } from './model-types.js'

/** A token that could have been chosen. */
export interface Alternative {
  id: number
  /**
   * The token's own text. If the token has only a part of a character, its text is U+FFFD. A special token has its text in
   * `inspect` alone: in an answer it has none.
   */
  text: string
  /** The natural logarithm of its probability, as `Token.logprob`. */
  logprob: number
}

/** Options of `model.inspect`. */
export interface InspectOptions extends AbortOptions {
  /**
   * The numbers that are read besides the tokens. Default: none.
   * - `candidates`: how likely each token was after those before it, and the likeliest tokens after each. As long as an
   *   answer of so many tokens takes.
   * - `activations`: the least and greatest value, the root of the mean square, and the number of values that are not finite,
   *   of each layer. As long as the prompt takes × layers × points ÷ 2.
   * - `attention`: the weights of a head.
   */
  what?: readonly ('candidates' | 'activations' | 'attention')[]
  /** The likeliest tokens after each one, 0 to 20. Default: 5. */
  top?: number
  /**
   * The points in a layer whose activations are read. `qkv`: queries, keys and values before they are normed and rotated.
   * `attention-out`: the residual stream after attention. `gate`: the gated values of the feed-forward network. `block`: the
   * residual stream after the layer. An empty list is `bad-option`. Default: `['block']`.
   */
  at?: readonly ActivationPoint[]
  /** The layer of the attention. Default: 0, the first. `info.layers` has their number. */
  layer?: number
  /** The head of the attention. Default: 0. `info.heads` has their number. */
  head?: number
  /** Called with the share that is done, up to 1. */
  onProgress?: (share: number) => void
}

/** A point in a layer. */
export type ActivationPoint = 'qkv' | 'attention-out' | 'gate' | 'block'

/** The result of `model.inspect`. */
export interface Inspection {
  /** The prompt's tokens, in order, as the tokenizer or the chat template makes them. */
  tokens: InspectedToken[]
  /** With `activations`: those of each layer, and in a layer of each point. */
  activations?: Activations[]
  /** With `attention`: those of one head. */
  attention?: Attention
}

/** A token of an inspected prompt. */
export interface InspectedToken {
  id: number
  /** Its own text, also that of a special token. If it has only a part of a character, its text is U+FFFD. */
  text: string
  /** Whether it is a special token, such as the beginning of a message. */
  special: boolean
  /**
   * With `candidates`: the natural logarithm of its probability after the tokens before it. Absent for the first one. Its
   * surprise in bits is `-logprob / Math.LN2`.
   */
  logprob?: number
  /** With `candidates`: the likeliest tokens after it, the likeliest first. */
  next?: Alternative[]
}

/** The values at one point of one layer, of all tokens. */
export interface Activations {
  /** The layer; the first is 0. */
  layer: number
  /** The point. */
  at: ActivationPoint
  /** The least finite value; 0 if there is none. */
  min: number
  /** The greatest finite value; 0 if there is none. */
  max: number
  /** The root of the mean of the squares of those that are finite. */
  rms: number
  /** How many are infinite or no numbers. */
  notFinite: number
}

/** The attention of one head. */
export interface Attention {
  /** The layer; the first is 0. */
  layer: number
  /** The head; the first is 0. */
  head: number
  /**
   * A row for each token with its weights of all tokens, `[tokens, tokens]`, one row after the other. Those up to the token
   * itself have the sum 1, and the others are 0.
   */
  weights: Float32Array
}

/** A tensor of a file. */
export interface FileTensor {
  /** Its name in the file, such as `blk.0.attn_q.weight`. */
  name: string
  /** How its values are packed, such as `TQ2_0`. */
  type: string
  /** Values in each dimension, the fastest first: `[columns, rows]` of a matrix. */
  shape: number[]
  /** Bytes in the file. */
  bytes: number
  /** The layer that it belongs to; absent for those of the whole model. */
  layer?: number
}

/** The contents of a tensor in figures. A field is absent where its type has no such thing. */
export interface TensorStatistics {
  /** How many values are -1, 0 and +1 times their scale. A type of one bit, such as `Q1_0`, has no 0. */
  counts?: [minus: number, zero: number, plus: number]
  /**
   * The bits of information in a ternary value, if each were drawn by these shares alone: at most 1.585, the logarithm of 3 to
   * the base 2.
   */
  entropy?: number
  /** The scales. */
  scales?: NumberSpread
  /** The offsets. */
  offsets?: NumberSpread
}

/** Some numbers. */
export interface NumberSpread {
  /** How many. */
  count: number
  min: number
  max: number
  mean: number
}
