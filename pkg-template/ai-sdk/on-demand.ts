// The members that the AI SDK's models here have in common.
// For apps whose TypeScript library is older than `await using`:
/// <reference lib="esnext.disposable" preserve="true" />
import { failureOf } from './errors.js'
import type { Held } from './held.js'
import type { TritloomAvailability } from './types.js'

/** A model that is loaded by its first call, or by `createSessionWithProgress`. */
export abstract class OnDemand {
  readonly specificationVersion = 'v4'
  readonly provider = 'tritloom'
  /** The address of the model, or its name if it has none. */
  readonly modelId: string
  /** @internal */
  protected readonly held: Held

  /** @internal */
  constructor(modelId: string, held: Held) {
    this.modelId = modelId
    this.held = held
  }

  /** Whether the model is loaded. */
  get isModelInitialized(): boolean {
    return this.held.isReady
  }

  /** Whether the model can be had here. Rejects with `bad-option` for an address that is none. */
  availability(): Promise<TritloomAvailability> {
    return this.held.availability()
  }

  /**
   * Loads the model, and gives it back. `onProgress` gets the share of the load from 0 to 1, rising, and 1 at
   * the end. Rejects as `BitNet.load` does. The next call then begins another load.
   */
  async createSessionWithProgress(onProgress?: (progress: number) => void): Promise<this> {
    try {
      await this.held.loadWithProgress(onProgress)
      return this
    } catch (error) {
      throw failureOf(error, this.modelId)
    }
  }

  /** Frees the GPU's memory, and ends a load. The next call loads the model again. */
  dispose(): Promise<void> {
    return this.held.dispose()
  }

  /** `dispose()`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose()
  }
}
