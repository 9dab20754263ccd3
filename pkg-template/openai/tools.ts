// Reads the tools of requests, and the calls in their messages. In chat completions the function of a
// tool stands in a field of its own; in responses a tool has the function's fields itself.
import {
  boolean, isGiven, isObject, list, oneOf, required, RequestError, text, unsupported, wrongType
} from './checks.js'
import type { Body, Readers } from './job.js'
import type { GenerateOptions, JsonSchema, Tool, ToolCall, ToolChoice } from '../types.js'

/** The fields of a function, and where they stand. */
interface Described {
  name: string
  described: Body
  at: string
}

/** The parameters about tools. `field` is where a tool has its function, if it has it in a field. */
export const toolReaders = (field?: string): Readers => ({
  tools: (value, param) =>
    ({ tools: list(value, param).map((one, n) => tool(functionOf(one, `${param}[${n}]`, field))) }),
  tool_choice: (value, param) => ({ toolChoice: toolChoice(value, param, field) }),
  parallel_tool_calls: (value, param) => ({ parallelToolCalls: boolean(value, param) })
})

/**
 * Takes tools out of the options that the model may not call. Refuses a choice that is none of them, and tools
 * beside the format of the text that the parameter `format` has asked for.
 */
export function checkTools(options: GenerateOptions, format: string): void {
  const { tools, toolChoice, responseFormat } = options
  if (!tools?.length || toolChoice === 'none') {
    // Without tools there can be no call, so only a request that asks for none is accepted.
    if (typeof toolChoice === 'object' || toolChoice === 'required') {
      const why = '\'tool_choice\' is only allowed when \'tools\' are specified.'
      throw new RequestError(why, 'invalid_value', 'tool_choice')
    }
    for (const name of ['tools', 'toolChoice', 'parallelToolCalls'] as const) delete options[name]
    return
  }
  if (responseFormat) throw unsupported(format, undefined, 'it cannot be given together with \'tools\'.')
  if (typeof toolChoice === 'object' && !tools.some(({ name }) => name === toolChoice.name)) {
    const why = `Invalid 'tool_choice': there is no tool '${toolChoice.name}'.`
    throw new RequestError(why, 'invalid_value', 'tool_choice')
  }
}

/** The function of a tool, of a choice or of a call. */
export function functionOf(value: unknown, param: string, field?: string): Described {
  if (!isObject(value)) throw wrongType(param, 'an object', value)
  const type = required(value, 'type', param)
  if (type !== 'function') throw unsupported(`${param}.type`, text(type, `${param}.type`))
  const at = field ? `${param}.${field}` : param
  const described = field ? required(value, field, param) : value
  if (!isObject(described)) throw wrongType(at, 'an object', described)
  return { name: functionName(described, at), described, at }
}

export const functionName = (described: Body, param: string): string =>
  text(required(described, 'name', param), `${param}.name`)

/** The arguments of a call, which are the JSON of an object. */
export function argumentsOf(described: Body, param: string): ToolCall['arguments'] {
  const name = `${param}.arguments`
  const written = text(required(described, 'arguments', param), name)
  let args: unknown
  try {
    args = JSON.parse(written)
  } catch { /* It is no JSON. */ }
  if (isObject(args)) return args
  throw new RequestError(`Invalid '${name}': expected the JSON of an object.`, 'invalid_value', name)
}

/** A tool. Its arguments are valid by its schema in any case, as on OpenAI's servers where `strict` is true. */
function tool({ name, described: { description, parameters }, at }: Described): Tool {
  if (isGiven(parameters) && !isObject(parameters)) throw wrongType(`${at}.parameters`, 'an object', parameters)
  return {
    name,
    ...(isGiven(description) && { description: text(description, `${at}.description`) }),
    // A schema without a type is one of an object there.
    ...(isGiven(parameters) && { parameters: { type: 'object', ...parameters as object } as JsonSchema })
  }
}

function toolChoice(value: unknown, param: string, field?: string): ToolChoice {
  if (isObject(value)) return { name: functionOf(value, param, field).name }
  return oneOf(value, param, ['none', 'auto', 'required']) as ToolChoice
}
