//! The TypeScript of this crate's exports. `api` is the package's `types.ts`.

use wasm_bindgen::prelude::*;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = "
import type * as api from './types.js'

/** The options that the crate checks. */
type LoadOptions = Omit<api.LoadOptions, 'signal' | 'onProgress' | 'worker' | 'adapters'>
type GenerateOptions = Omit<api.GenerateOptions, 'signal' | 'responseFormat' | 'tools'> & {
  tools?: (Omit<api.Tool, 'parameters'> & { parameters?: string })[] | undefined
}
type CountOptions = Pick<GenerateOptions, 'tools' | 'toolChoice' | 'parallelToolCalls'>
type DecideOptions = Omit<api.DecideOptions, 'signal'>
type InspectOptions = Omit<api.InspectOptions, 'signal' | 'onProgress'>
type EmbedOptions = Omit<api.EmbedOptions, 'signal' | 'onProgress'>

/** The vectors of texts, one after the other, their tokens, and how many texts were cut. */
export interface Embedded {
  values: Float32Array
  tokens: number
  cut: number
}

/** An adapter, and the number by which it is applied. */
export interface AdapterFacts extends api.AdapterInfo {
  id: number
}

/** A part of a call of a tool, with some of its arguments as its text. */
export interface CallPart {
  index: number
  name?: string
  ends: boolean
}

/** The fields that the option `logprobs` adds to a token. */
type Logprobs = Pick<api.Token, 'logprob' | 'bytes' | 'top'>
";
