// A language model of the AI SDK.
import type { Call } from './call.js'
import { failureOf } from './errors.js'
import { Held, nameOf } from './held.js'
import { OnDemand } from './on-demand.js'
import type {
  CallOptions, GenerateResult, LoadedModel, StreamPart, StreamResult, TritloomSettings
} from './types.js'
import { fetched } from '../error.js'
import { newId } from '../ids.js'
import { unlessAborted } from '../page/abort.js'
import type { Source } from '../types.js'

/** The code that answers calls. The first call fetches it. */
const answering = () => fetched(() => import('./answer.js'))

/** A call that has begun. */
interface Begun {
  call: Call
  parts: AsyncGenerator<StreamPart, void, undefined>
  answer: Awaited<ReturnType<typeof answering>>
  /** Stops the model. */
  leave(): void
}

/**
 * A model for the functions of the npm package `ai`: its `LanguageModelV4`. It is loaded by its first call,
 * or by `createSessionWithProgress`. Calls at once run as a batch.
 *
 * A failure is a `BitNetError` with its `code`. It also is the SDK's `APICallError`, whose `isRetryable` says
 * whether the SDK tries again: it does after the loss of the GPU and after failures of the network. A call
 * that is stopped rejects with its signal's reason.
 */
export class TritloomLanguageModel extends OnDemand {
  /** None: a model here reads text alone. */
  readonly supportedUrls: Record<string, RegExp[]> = {}

  /**
   * A model that shares nothing with others of the same address: `tritloom(source, settings)` does. Throws `bad-option`
   * for what is no source, for settings that are no object, and for settings of a loaded model.
   */
  constructor(source: Source | LoadedModel, settings?: TritloomSettings)
  /** @internal */
  constructor(source: Source | LoadedModel, held: Held)
  constructor(source: Source | LoadedModel, given: TritloomSettings | Held = {}) {
    super(nameOf(source), given instanceof Held ? given : new Held(source, given))
  }

  /** Answers a call as a whole. For `generateText`. */
  async doGenerate(asked: CallOptions): Promise<GenerateResult> {
    try {
      const { call, parts, answer } = await this.#begin(asked)
      const whole = await answer.whole(parts)
      return { ...whole, request: requestOf(call), response: this.#response(), warnings: call.warnings }
    } catch (error) {
      throw failureOf(error, this.modelId)
    }
  }

  /**
   * Answers a call in parts. For `streamText`. Resolves once the first token is there, so that a failure
   * before it rejects, and may be tried again. A later one is a part.
   */
  async doStream(asked: CallOptions): Promise<StreamResult> {
    try {
      const { call, parts, answer, leave } = await this.#begin(asked)
      const first = await parts.next()
      const { modelId } = this
      const stream = new ReadableStream<StreamPart>({
        start: controller => {
          controller.enqueue({ type: 'stream-start', warnings: call.warnings })
          controller.enqueue({ type: 'response-metadata', ...this.#response() })
          if (!first.done) controller.enqueue(first.value)
        },
        async pull(controller) {
          try {
            const { done, value } = await parts.next()
            if (!done) return controller.enqueue(value)
          } catch (error) {
            if (asked.abortSignal?.aborted) return controller.error(asked.abortSignal.reason)
            controller.enqueue({ type: 'error', error: failureOf(error, modelId) })
            controller.enqueue(answer.failed)
          }
          controller.close()
        },
        cancel: leave
      })
      return { stream, request: requestOf(call) }
    } catch (error) {
      throw failureOf(error, this.modelId)
    }
  }

  /** A call that is stopped while the model is loaded leaves the load to others. */
  async #begin(asked: CallOptions): Promise<Begun> {
    const { abortSignal } = asked
    const [answer, model] = await unlessAborted(abortSignal, () => Promise.all([answering(), this.held.load()]))
    const call = answer.callOf(asked, model.info)
    const left = new AbortController()
    const signal = AbortSignal.any(abortSignal ? [abortSignal, left.signal] : [left.signal])
    const generation = model.generate(call.messages, { ...call.options, signal })
    // Reading the tokens reports the same failure.
    generation.stats.catch(() => {})
    const parts = answer.partsOf(generation, call, asked.includeRawChunks === true)
    return { call, parts, answer, leave: () => left.abort() }
  }

  #response() {
    return { id: newId('tritloom-'), timestamp: new Date(), modelId: this.modelId }
  }
}

const requestOf = ({ messages, options }: Call) => ({ body: { messages, ...options } })
