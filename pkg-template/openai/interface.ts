// OpenAI's interface to a model. The code behind it is fetched at the first request.
import { fetched } from '../error.js'
import type { Answerer } from './answerer.js'
import type { Embedder } from './embeddings.js'
import type { Responses } from './responses-types.js'
import type { ChatCompletions } from './types.js'

const server = () => fetched(() => import('./server.js'))

/** `model.chat`. */
export function chatOf(model: Answerer): ChatCompletions {
  const create = async (...args: [body: unknown, options?: { signal?: AbortSignal }]) =>
    (await server()).create(model, ...args)
  // `stream` decides which of the two types it resolves to. The overloads of `create` say so.
  return { completions: { create: create as ChatCompletions['completions']['create'] } }
}

/** `model.responses`. */
export function responsesOf(model: Answerer): Responses {
  const create = async (...args: [body: unknown, options?: { signal?: AbortSignal }]) =>
    (await server()).createResponse(model, ...args)
  return { create: create as Responses['create'] }
}

/** `model.fetch`. */
export const fetchOf = (model: Answerer & Embedder) =>
  async (input: string | URL | Request, init?: RequestInit): Promise<Response> =>
    (await server()).answer(model, input, init)
