export { DecisionModel } from './built-in-ai/decision-model.js'
export { QuotaExceededError } from './built-in-ai/errors.js'
export { LanguageModel } from './built-in-ai/language-model.js'
export { CreateMonitor } from './built-in-ai/monitor.js'
export { SemanticEmbedder } from './built-in-ai/semantic-embedder.js'
export { configure } from './built-in-ai/shared-model.js'
export { Summarizer } from './built-in-ai/summarizer.js'
export { LanguageModelToolCall, LanguageModelToolError, LanguageModelToolSuccess } from './built-in-ai/tool-values.js'
export type {
  DecisionModelCreateCoreOptions, DecisionModelCreateOptions, DecisionModelDecision, DecisionModelQuestion
} from './built-in-ai/decision-model.js'
export type { QuotaExceeded, QuotaExceededClass } from './built-in-ai/errors.js'
export type { CreateMonitorCallback } from './built-in-ai/monitor.js'
export type {
  SemanticEmbedderEmbedOptions, SemanticEmbedderResult, SemanticEmbedderTaskType
} from './built-in-ai/semantic-embedder.js'
export type { Download, Settings } from './built-in-ai/settings.js'
export type { Availability } from './built-in-ai/shared-model.js'
export type {
  ModelPreference, SummarizerCreateCoreOptions, SummarizerCreateOptions, SummarizerFormat, SummarizerLength, SummarizerSummarizeOptions, SummarizerType
} from './built-in-ai/summarizer.js'
export type { LanguageModelToolResultContent } from './built-in-ai/tool-values.js'
export type {
  CreateOptions, LanguageModelAnswerContent, LanguageModelCreateCoreOptions, LanguageModelCreateOptions, LanguageModelExpected,
  LanguageModelMessage, LanguageModelMessageContent, LanguageModelMessageRole, LanguageModelMessageType, LanguageModelPrompt,
  LanguageModelPromptOptions, LanguageModelSamplingMode, LanguageModelTool, SignalOptions
} from './built-in-ai/types.js'
