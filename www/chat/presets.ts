// Settings of sampling that go together. This file knows nothing of the page.

/** The values of the fields of sampling. */
export interface Sampling {
  greedy: boolean
  temperature: number
  topK: number
  topP: number
  minP: number
  repeatPenalty: number
}

const OFF = { greedy: false, topK: 0, topP: 1, minP: 0, repeatPenalty: 1 } as const

export const PRESETS: Readonly<Record<string, Sampling>> = {
  'Balanced': { ...OFF, temperature: 0.7, topK: 40 },
  'Precise': { ...OFF, temperature: 0.7, topK: 40, greedy: true },
  'Creative': { ...OFF, temperature: 1, minP: 0.05 },
  'Without repetition': { ...OFF, temperature: 0.7, topK: 40, repeatPenalty: 1.15 }
}

/** The name of the preset with these values; undefined if they are of none. */
export const presetOf = (sampling: Sampling): string | undefined =>
  Object.keys(PRESETS).find(name => {
    const preset = PRESETS[name]!
    const isSame = (key: keyof Sampling) => preset[key] === sampling[key]
    // A greedy answer draws nothing.
    return preset.greedy ? sampling.greedy && isSame('repeatPenalty') : (Object.keys(preset) as (keyof Sampling)[]).every(isSame)
  })
