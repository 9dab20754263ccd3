// Reads calls of the AI SDK.
import { messagesOf } from './prompt.js'
import type { CallOptions, CallTool, CallWarning, LoadedModel, TritloomProviderOptions } from './types.js'
import { badOption, checkOptions } from '../check.js'
import type { GenerateOptions, JsonSchema, Message, Tool, ToolChoice } from '../types.js'

/** A call in the words of this package. */
export interface Call {
  messages: Message[]
  options: GenerateOptions
  warnings: CallWarning[]
  /** The tool whose arguments are the text of the answer, if there is one. */
  answerTool?: string
}

/** The SDK's names of options, and ours. The model checks their values. */
const NAMES = {
  maxOutputTokens: 'maxTokens',
  temperature: 'temperature',
  topK: 'topK',
  topP: 'topP',
  presencePenalty: 'presencePenalty',
  frequencyPenalty: 'frequencyPenalty',
  stopSequences: 'stop',
  seed: 'seed'
} as const

/** Options that have no name in the SDK. */
const OWN = [
  'minP', 'repeatPenalty', 'logitBias', 'thinking', 'maxThinkingTokens', 'promptLookup', 'parallelToolCalls',
  'responseFormat'
] as const satisfies (keyof TritloomProviderOptions)[]

/** With a `topP` of 0 only the likeliest token can be drawn. This value has the same effect. */
const MIN_TOP_P = 1e-9

/** Reads a call. Throws `bad-option` for what cannot be answered. */
export function callOf(asked: CallOptions, info: LoadedModel['info']): Call {
  const warnings: CallWarning[] = []
  const messages = messagesOf(asked.prompt, warnings)
  const options: GenerateOptions = { ...sampling(asked), ...reasoning(asked, info, warnings) }
  const answerTool = say(asked, options, warnings)
  Object.assign(options, ownOptions(asked))
  return { messages, options, warnings, ...(answerTool !== undefined && { answerTool }) }
}

function sampling(asked: CallOptions): GenerateOptions {
  // As with OpenAI's interface: a caller who expects drawn answers should not get a greedy one.
  const options: Record<string, unknown> = { temperature: 1 }
  for (const [theirs, ours] of Object.entries(NAMES)) {
    const value = asked[theirs as keyof typeof NAMES]
    if (value !== undefined) options[ours] = value
  }
  if (options['topP'] === 0) options['topP'] = MIN_TOP_P
  if (Number.isInteger(options['seed'])) options['seed'] = Number(options['seed']) >>> 0
  if (asked.stopSequences?.includes('')) throw badOption('stopSequences', 'must not have an empty text')
  return options
}

function reasoning({ reasoning }: CallOptions, info: LoadedModel['info'], warnings: CallWarning[]): GenerateOptions {
  if (reasoning === undefined || reasoning === 'provider-default') return {}
  const feature = 'reasoning'
  if (!info.thinking) {
    warnings.push({ type: 'unsupported', feature, details: 'this model cannot be told whether to reason' })
    return {}
  }
  if (reasoning === 'none') return { thinking: false }
  warnings.push({ type: 'compatibility', feature, details: 'this model reasons or not, and has no degrees' })
  return { thinking: true }
}

/**
 * Adds the tools and the format of the answer to `options`. A model cannot have both: a format holds the
 * whole answer. So with both, the answer in the format is one more tool, which the model calls instead of
 * writing a text. Its name is given back.
 */
function say(asked: CallOptions, options: GenerateOptions, warnings: CallWarning[]): string | undefined {
  const { responseFormat: format, toolChoice = { type: 'auto' } } = asked
  const schema = format?.type === 'json' ? plain(format.schema) : undefined
  const tools = toolsOf(asked.tools ?? [], warnings)
  if (tools.length === 0 || toolChoice.type === 'none') {
    if (tools.length === 0 && (toolChoice.type === 'required' || toolChoice.type === 'tool')) {
      throw badOption('toolChoice', 'needs tools')
    }
    if (format?.type === 'json') {
      options.responseFormat = schema === undefined ? { type: 'json_object' } : { type: 'json_schema', schema }
    }
    return undefined
  }
  options.tools = tools
  options.toolChoice = choiceOf(toolChoice)
  if (format?.type !== 'json') return undefined
  if (toolChoice.type !== 'auto') {
    // The SDK refuses an answer without a call.
    warnings.push({ type: 'unsupported', feature: 'responseFormat', details: 'the model must call a tool' })
    return undefined
  }
  options.toolChoice = 'required'
  const name = freeName(tools)
  tools.push({ name, description: 'Gives the answer.', parameters: asObject(schema) })
  options.parallelToolCalls = false
  return name
}

function toolsOf(tools: readonly CallTool[], warnings: CallWarning[]): Tool[] {
  return tools.flatMap(tool => {
    if (tool.type === 'provider') {
      warnings.push({ type: 'unsupported', feature: `provider-defined tool ${tool.id}` })
      return []
    }
    const { name, description, inputSchema, inputExamples } = tool
    if (inputExamples?.length) {
      const details = 'addToolInputExamplesMiddleware puts them into the description'
      warnings.push({ type: 'unsupported', feature: `inputExamples of the tool ${name}`, details })
    }
    return [{ name, ...(description !== undefined && { description }), parameters: asObject(inputSchema) }]
  })
}

/**
 * A schema as it stands. One of zod also has a hidden method that says it anew, without what the SDK has added
 * since: `responseFormat` would ask that.
 */
const plain = (schema: unknown): JsonSchema | undefined =>
  typeof schema === 'object' ? { ...schema } : schema as JsonSchema | undefined

/** The schema of arguments. Without a type it is one of an object. */
const asObject = (schema: unknown): JsonSchema => ({ type: 'object', ...plain(schema) as object })

const choiceOf = (choice: NonNullable<CallOptions['toolChoice']>): ToolChoice =>
  choice.type === 'tool' ? { name: choice.toolName } : choice.type

/** A name that no tool has. */
function freeName(tools: readonly Tool[]): string {
  let name = 'answer'
  while (tools.some(tool => tool.name === name)) name += '_'
  return name
}

function ownOptions({ providerOptions }: CallOptions): TritloomProviderOptions {
  const own = providerOptions?.['tritloom'] ?? {}
  checkOptions(own, OWN)
  return own
}
