export { BitNet } from './page/model.js'
export { BitNetError } from './error.js'
export type { Chat } from './page/chat.js'
export type { Generation } from './generation.js'
export type { ModelCache } from './page/cache.js'
export type {
  AbortOptions, ActivationPoint, Activations, Adapter, AdapterInfo, Alternative, AppliedAdapter, Attention, Availability, AvailabilityOptions, BackendAvailability, CallPart, ChatDefaults, ChatOptions, CountOptions, DecideOptions, Decision, Decisions, DecisionStats,
  DeviceLoss, EmbedOptions, EmbedProgress, ErrorCode, GenerateOptions, GpuOptions, Input, InspectedToken, Inspection, InspectOptions, JsonSchema, KernelTime, LoadedAdapter, LoadOptions, Message,
  ModelInfo, Pooling, Profile, ProfileOptions, Progress, ProgressNote, Question, QuestionOption, ResponseFormat, RunnableTool, RunToolsOptions, SchemaObject, Source, Stats, StoredModel, SummarizeOptions, SummaryProgress, Token, TokenizeOptions, Tool, ToolCall,
  ToolChoice, ToolRun, TurnOptions, Verdict
} from './types.js'
export type {
  ChatCompletion, ChatCompletionChoice, ChatCompletionChunk, ChatCompletionChunkChoice,
  ChatCompletionMessageParam, ChatCompletionOptions, ChatCompletionRequest, ChatCompletions,
  ChatCompletionStream, ChatCompletionTool, ChatCompletionToolCall, ChatLogprobs, CompletionChoice, CompletionLogprobs, CompletionUsage,
  DrawingRequest, FinishReason, ReasoningEffort, TokenLogprob
} from './openai/types.js'
export type {
  ResponseEvent, ResponseEvents, ResponseFunctionCall, ResponseFunctionCallOutput, ResponseInputCall, ResponseInputItem,
  ResponseInputMessage, ResponseItemStatus, ResponseLogprob, ResponseObject, ResponseOutputItem, ResponseOutputMessage,
  ResponseOutputText, ResponsePlace, ResponseReasoningItem, ResponseReasoningText, ResponseRequest, Responses, ResponseTextFormat,
  ResponseTokenLogprob, ResponseTool, ResponseToolChoice, ResponseUsage
} from './openai/responses-types.js'
