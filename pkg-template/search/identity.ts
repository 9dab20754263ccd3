// Whether an index is of this model: its vectors and those of another cannot be compared.
import { badOption } from '../check.js'
import { BitNetError } from '../error.js'
import type { Pooling } from '../types.js'
import { MAX_DIMENSIONS } from './rows.js'
import { damaged, LAYOUT } from './storage.js'
import type { About } from './storage.js'
import type { Embedder } from './types.js'

/** Texts that every model says something else about. */
const PROBES = ['The lamp beside the door is broken.', 'How long does the ferry take in winter?']

/** The least cosine of a probe's vectors. Different machines round differently; other weights give less. */
const SAME = 0.98

/** The facts of an index of this model, before its first edition. */
export async function aboutOf(
  model: Embedder, pooling: Pooling, embed: (texts: string[]) => Promise<Float32Array[]>
): Promise<About> {
  const { name, architecture, parameters, bytes } = model.info
  const probes = await embed(PROBES)
  const adapters = model.adaptersHash ?? ''
  checkVectors(probes, PROBES.length, probes[0]?.length ?? 0)
  if (probes[0]!.length > MAX_DIMENSIONS) throw badOption('model', `has vectors of more than ${MAX_DIMENSIONS} values`)
  return { layout: LAYOUT, edition: 0, model: { name, architecture, parameters, bytes }, adapters, pooling, probes }
}

/** Refuses a stored index that is damaged or of another model than `ours`. */
export function checkAbout(stored: About, ours: About): void {
  const { layout, edition, model, probes, pooling } = stored
  const isWhole = layout === LAYOUT && Number.isSafeInteger(edition) && edition > 0 && typeof model === 'object' &&
    Array.isArray(probes) && probes.length === PROBES.length && probes.every(probe => probe instanceof Float32Array)
  if (!isWhole) throw damaged('what it is of cannot be read')
  for (const fact of ['name', 'architecture', 'parameters', 'bytes'] as const) {
    if (model[fact] !== ours.model[fact]) differs(`model's ${fact}`, model[fact], ours.model[fact])
  }
  checkAdapters(stored, ours.adapters)
  if (pooling !== ours.pooling) differs('pooling', pooling, ours.pooling)
  const [width, ourWidth] = [probes[0]!.length, ours.probes[0]!.length]
  if (width !== ourWidth) differs('number of dimensions', width, ourWidth)
  probes.forEach((probe, n) => {
    // Also if a stored value is no number.
    if (!(cosine(probe, ours.probes[n]!) >= SAME)) {
      throw mismatch(`the model \`${model.name}\` has other weights than the one that it was made with`)
    }
  })
}

/** Refuses an index whose vectors were made with other adapters than `ours`. */
export function checkAdapters({ adapters = '' }: About, ours = ''): void {
  if (adapters !== ours) throw mismatch('other adapters are applied to the model than when the index was made')
}

/** Refuses vectors that a scalar product cannot compare. */
export function checkVectors(vectors: readonly Float32Array[], count: number, dimensions: number): void {
  const isRight = (vector: Float32Array) =>
    vector.length === dimensions && Math.abs(cosine(vector, vector) - 1) < 1e-3
  if (vectors.length !== count || !vectors.every(isRight)) {
    throw new BitNetError('internal', 'the model gives vectors whose length is not 1')
  }
}

/** The scalar product of vectors, which is their cosine if their lengths are 1. */
export function cosine(a: Float32Array, b: Float32Array): number {
  let sum = 0
  for (let n = 0; n < a.length; n++) sum += a[n]! * b[n]!
  return sum
}

function differs(what: string, stored: unknown, ours: unknown): never {
  throw mismatch(`its ${what} is ${String(stored)}, and not ${String(ours)}`)
}

const mismatch = (why: string): BitNetError =>
  new BitNetError('index-mismatch', `the index was made otherwise: ${why}; take another \`name\`, or delete it`)
