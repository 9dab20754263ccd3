// The types of `tritloom/ai-sdk` are those of the AI SDK: `tsc` compares them.
import type {
  EmbeddingModelV4, EmbeddingModelV4CallOptions, EmbeddingModelV4Result, LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4GenerateResult, LanguageModelV4StreamResult, ProviderV4
} from '@ai-sdk/provider'
import type { LanguageModel, UIMessage, UIMessageChunk } from 'ai'
import type { BitNet } from 'tritloom'
import type * as tritloom from 'tritloom/ai-sdk'

export const model = (given: tritloom.TritloomLanguageModel): LanguageModelV4 & LanguageModel => given
export const embedding = (given: tritloom.TritloomEmbeddingModel): EmbeddingModelV4 => given
export const provider = (given: tritloom.TritloomProvider): ProviderV4 => given
export const loaded = (given: BitNet): tritloom.LoadedModel => given
// Methods are compared less strictly than functions, so what they take and give is compared by itself.
export const asked = (given: LanguageModelV4CallOptions): tritloom.CallOptions => given
export const generated = (given: tritloom.GenerateResult): LanguageModelV4GenerateResult => given
export const embedAsked = (given: EmbeddingModelV4CallOptions): tritloom.EmbedCallOptions => given
export const embedded = (given: tritloom.EmbedResult): EmbeddingModelV4Result => given
export const streamed = (given: tritloom.StreamResult): LanguageModelV4StreamResult => given

export const message = (given: tritloom.TritloomUIMessage): UIMessage => given
// The names and the data of its parts are known.
export const chunk: UIMessageChunk<never, tritloom.TritloomDataParts> =
  { type: 'data-modelDownloadProgress', id: '1', data: { status: 'downloading', progress: 50, message: 'Half.' } }
// @ts-expect-error There is no such state.
export const wrong: tritloom.TritloomDataParts['modelDownloadProgress'] = { status: 'half', message: '' }
