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
  /** Rejects each call that runs. One promise for all of them would hold on to what each has given. */
  #running = new Set<(why: BitNetError) => void>()
  /** No answer will come any more: the model was let go, or the crate has crashed. */
  #lose = (why: BitNetError) => {
    this.#lost ??= why
    for (const reject of this.#running) reject(this.#lost)
  }
  #unwatch = watch(this.#lose)

  async call<M extends Method>(method: M, args: Parameters<Methods[M]>, streaming: Streaming = {}): Promise<ReturnType<Methods[M]>> {
    if (this.#lost) throw this.#lost
    await ready()
    if (this.#lost) throw this.#lost
    const implementation = this.#methods[method] as Implementation<M>
    let lose!: (why: BitNetError) => void
    const loss = new Promise<never>((_, reject) => { lose = reject })
    this.#running.add(lose)
    try {
      return await Promise.race([implementation(args, streaming), loss])
    } finally {
      this.#running.delete(lose)
    }
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
