// Runs the tools that a model calls. Fetched when it is first needed.
import { unlessAborted } from './abort.js'
import { badOption, checkCallback, checkCount, checkMessages, checkOptions, checkSignal } from '../check.js'
import type { Generation } from '../generation.js'
import type {
  GenerateOptions, Message, RunToolsOptions, Stats, ToolCall, ToolRun
} from '../types.js'

/** The part of a model that runs tools. */
interface Calling {
  generate(input: readonly Message[], options: GenerateOptions): Generation
}

const MAX_STEPS = 10

/** `model.runTools`. */
export async function runTools(model: Calling, given: RunToolsOptions): Promise<ToolRun> {
  checkOptions(given)
  const { messages: asked, tools, maxSteps = MAX_STEPS, onAnswer, onError, toolChoice = 'auto', ...rest } = given
  checkOptionsOf(tools, maxSteps)
  checkCallback('onAnswer', onAnswer)
  checkCallback('onError', onError)
  checkSignal(rest.signal)
  if ((toolChoice as unknown) === 'none') throw badOption('toolChoice', 'must let the model call tools')
  // The last answer has no tools.
  if (maxSteps === 1 && toolChoice !== 'auto') throw badOption('maxSteps', 'must be at least 2 with this `toolChoice`')
  if (typeof asked !== 'string') checkMessages(asked)
  const described = Object.entries(tools).map(([name, { execute: _, ...tool }]) => ({ ...tool, name }))
  const messages: Message[] = typeof asked === 'string' ? [{ role: 'user', content: asked }] : [...asked]
  const stats: Stats[] = []
  for (;;) {
    const choice = stats.length === 0 ? toolChoice : 'auto'
    const isLast = stats.length === maxSteps - 1
    const calling: GenerateOptions = isLast ? rest : { ...rest, tools: described, toolChoice: choice }
    if (isLast) delete calling.parallelToolCalls
    const answer = model.generate(messages, calling)
    await told(answer, onAnswer)
    const text = await answer.text()
    const toolCalls = await answer.toolCalls()
    stats.push(await answer.stats)
    messages.push({ role: 'assistant', content: text, ...(toolCalls.length > 0 && { toolCalls }) })
    if (toolCalls.length === 0) return { text, messages, stats }
    messages.push(...await results(tools, toolCalls, given))
  }
}

function checkOptionsOf(tools: unknown, maxSteps: unknown): void {
  checkCount('maxSteps', maxSteps)
  if (maxSteps === 0) throw badOption('maxSteps', 'must be at least 1')
  if (typeof tools !== 'object' || tools === null || Array.isArray(tools)) {
    throw badOption('tools', 'must be an object with a tool for each name')
  }
  for (const [name, tool] of Object.entries(tools)) {
    if (typeof (tool as { execute?: unknown } | null)?.execute !== 'function') {
      throw badOption(`tools.${name}.execute`, 'must be a function')
    }
  }
}

/** The messages with the results of calls. If one rejects, the signal of the others aborts. */
async function results(
  tools: RunToolsOptions['tools'], calls: readonly ToolCall[], { onError, signal: given }: RunToolsOptions
): Promise<Message[]> {
  const failed = new AbortController()
  const signal = given ? AbortSignal.any([given, failed.signal]) : failed.signal
  try {
    return await Promise.all(calls.map(call => result(tools, call, { onError, signal })))
  } catch (error) {
    failed.abort(error)
    throw error
  }
}

/** The message with the result of a call. */
async function result(
  tools: RunToolsOptions['tools'], call: ToolCall, { onError, signal }: Pick<RunToolsOptions, 'onError'> & { signal: AbortSignal }
): Promise<Message> {
  const { id, name, arguments: args } = call
  const content = await (async () => {
    try {
      return written(await unlessAborted(signal, async () => tools[name]!.execute(args, { id, signal })))
    } catch (error) {
      signal.throwIfAborted()
      onError?.(error, call)
      return `Error: ${messageOf(error)}`
    }
  })()
  return { role: 'tool', content, toolCallId: id }
}

/** Calls `onAnswer`. If it throws, the answer ends first. */
async function told(answer: Generation, onAnswer: RunToolsOptions['onAnswer']): Promise<void> {
  try {
    onAnswer?.(answer)
  } catch (error) {
    await answer.stream().cancel()
    throw error
  }
}

/** The message of anything that was thrown. Some values have no text. */
const messageOf = (error: unknown): string => {
  try {
    return error instanceof Error ? error.message : String(error)
  } catch {
    return 'unknown'
  }
}

/** A result as text. */
const written = (value: unknown): string =>
  typeof value === 'string' ? value : JSON.stringify(value) ?? ''
