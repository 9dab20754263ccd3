// The model in this thread: calls by name to the compiled crate. The worker runs one of these too.
import { BitNetError } from './error.js'
import type { Method, Methods, Streaming, Transport } from './protocol.js'
import { received } from './source.js'
import type { DeviceLoss } from './types.js'
import { WasmModel } from './ternlight.js'
import { ready, watch } from './wasm.js'

type Implementation<M extends Method> =
  (args: Parameters<Methods[M]>, streaming: Streaming) => ReturnType<Methods[M]> | Promise<ReturnType<Methods[M]>>

export class Engine implements Transport {
  onLost: ((loss: DeviceLoss) => void) | undefined
  #model: WasmModel | undefined
  #lost: BitNetError | undefined
  #lose!: (why: BitNetError) => void
  /** Rejects when no answer will come any more: the model was let go, or the crate has crashed. */
  #loss = new Promise<never>((_, reject) => {
    this.#lose = why => {
      this.#lost ??= why
      reject(this.#lost)
    }
  })
  #unwatch = watch(this.#lose)

  constructor() {
    // Each call waits for it; with no call there is no one to tell.
    this.#loss.catch(() => {})
  }

  async call<M extends Method>(method: M, args: Parameters<Methods[M]>, streaming: Streaming = {}): Promise<ReturnType<Methods[M]>> {
    if (this.#lost) throw this.#lost
    await ready()
    if (this.#lost) throw this.#lost
    const implementation = this.#methods[method] as Implementation<M>
    return Promise.race([implementation(args, streaming), this.#loss])
  }

  close(why: BitNetError): void {
    this.#lose(why)
    this.#unwatch()
    this.#model?.dispose()
    this.#model = undefined
  }

  #methods: { [M in Method]: Implementation<M> } = {
    load: async ([source, options], { onPiece, signal }) => {
      const model = await WasmModel.load(received(source), options, onPiece, (loss: DeviceLoss) => this.onLost?.(loss), signal)
      if (this.#lost) model.dispose()
      else this.#model = model
      return model.info()
    },
    generate: ([input, options], { onPiece, signal }) => {
      const tell = (id: number | undefined, text: string) => onPiece?.(id === undefined ? { text } : { id, text })
      return this.#loaded.generate(input, options, tell, signal)
    },
    tokenize: ([text, special]) => this.#loaded.tokenize(text, special),
    detokenize: ([ids]) => this.#loaded.detokenize(ids),
    countTokens: ([input]) => this.#loaded.countTokens(input),
    logits: ([ids]) => this.#loaded.logits(ids),
    profile: ([position, tokens]) => this.#loaded.profile(position, tokens)
  }

  get #loaded(): WasmModel {
    if (!this.#model) throw new BitNetError('internal', 'internal error (please report it): no model is loaded')
    return this.#model
  }
}
