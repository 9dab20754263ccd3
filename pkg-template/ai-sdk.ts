// The entry `tritloom/ai-sdk`: models for the npm package `ai`.
//
// A project may use this entry without the package `ai`. TypeScript would then refuse the next line, so
// its error is ignored: the type of messages is `any`, and all other types are checked.
/** @ts-ignore: see above. */
import type { UIMessage } from 'ai'
import { createTritloom } from './ai-sdk/provider.js'
import type { TritloomDataParts } from './ai-sdk/types.js'
import { runnable } from './cpu/probes.js'
import { isBrowser } from './page/browser.js'

export { createTritloom } from './ai-sdk/provider.js'
export type { TritloomProvider } from './ai-sdk/provider.js'
export { TritloomEmbeddingModel } from './ai-sdk/embedding.js'
export { TritloomLanguageModel } from './ai-sdk/model.js'
export type {
  CalledTool, CallFinish, CallMetadata, CallOptions, CallRequest, CallTool, CallUsage, CallWarning, EmbedCallOptions,
  EmbedResult, GenerateResult, LoadedModel, PromptMessage, PromptPart, StreamPart, StreamResult, ToolOutput, TritloomAvailability, TritloomDataParts,
  TritloomEmbeddingOptions, TritloomProviderOptions, TritloomSettings
} from './ai-sdk/types.js'

/** Messages of `useChat` with the data parts that the packages of `@browser-ai` have too. */
export type TritloomUIMessage = UIMessage<never, TritloomDataParts>

/** The provider of this package's models: `streamText({ model: tritloom(address), … })`. */
export const tritloom = createTritloom()

/**
 * Whether this looks like a browser that can run models, told at once; in Node, Deno and Bun too.
 * `model.availability()` finds out for sure.
 */
export const doesBrowserSupportTritloom = (): boolean =>
  isBrowser() && (globalThis.navigator?.gpu !== undefined || runnable().length > 0)
