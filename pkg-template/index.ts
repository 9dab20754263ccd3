export { BitNet } from './model.js'
export { BitNetError } from './error.js'
export type { Chat } from './chat.js'
export type { Generation } from './generation.js'
export type { ModelCache } from './cache.js'
export type {
  Availability, ErrorCode, GenerateOptions, GpuOptions, Input, LoadOptions, Message, ModelInfo, Progress, ProgressNote,
  Source, Stats, StoredModel, Token, Verdict
} from './types.js'
