// The known models. All but the bundled one are listed as their authors publish them: we have not
// run those files.
import { BUNDLED_MODEL } from '../bundled.ts'

/** Models that have much in common. */
export interface Family {
  name: string
  /** Facts to know before choosing one. */
  about: string
  licence: string
  /** The type of the weights. */
  weights: string
  note: string
  models: readonly KnownModel[]
}

/** A model that can be downloaded. */
export interface KnownModel {
  name: string
  /** Its weights, as its authors count them. */
  parameters: string
  /** Bytes of the file, as reported. */
  bytes: number
  /** Its repository on Hugging Face; absent for the model that comes with the page. */
  repository?: string
  /** Its file there, or the address of a file; absent if only the repository is known. */
  file?: string
  /** Tokens of context, if reported. */
  context?: number
  /** Tokens of the vocabulary, if reported. */
  vocabulary?: number
}

const AS_PUBLISHED = 'As published; not run by us.'

const HUB = 'https://huggingface.co'

/** The address of a model's file, if it is known. */
export const fileOf = ({ repository, file }: KnownModel): string | undefined =>
  repository && file ? `${HUB}/${repository}/resolve/main/${file}` : file

/** The address of the page with a model's files, if there is one. */
export const pageOf = ({ repository }: KnownModel): string | undefined =>
  repository && `${HUB}/${repository}`

const MIB = 2 ** 20

// Bonsai and Falcon are listed with their repositories only. Bonsai's files are about to be
// renamed, and the names of Falcon's files are unknown to us.
export const FAMILIES: readonly Family[] = [
  {
    name: 'With this page',
    about: 'A toy that tells stories in simple English.',
    licence: 'MIT or Apache-2.0',
    weights: 'I2_S',
    note: 'Run by our tests.',
    models: [
      {
        name: 'Tiny stories', parameters: '26M', bytes: 10_342_944, context: 1024, vocabulary: 4096,
        file: BUNDLED_MODEL
      }
    ]
  },
  {
    name: 'BitNet',
    about: 'English.',
    licence: 'MIT',
    weights: 'I2_S',
    note: AS_PUBLISHED,
    models: [
      {
        name: 'BitNet b1.58 2B-4T', parameters: '2B', bytes: 1.19e9, context: 4096, vocabulary: 128_256,
        repository: 'microsoft/bitnet-b1.58-2B-4T-gguf', file: 'ggml-model-i2_s.gguf'
      }
    ]
  },
  {
    name: 'BitCPM-CANN',
    about: 'Chinese and English.',
    licence: 'Apache-2.0',
    weights: 'TQ2_0',
    note: AS_PUBLISHED,
    models: [
      {
        name: 'BitCPM-CANN 0.5B', parameters: '0.5B', bytes: 245e6, vocabulary: 73_448,
        repository: 'openbmb/BitCPM-CANN-0.5B-gguf', file: 'bitcpm4-0.5b-tq2_0.gguf'
      },
      {
        name: 'BitCPM-CANN 1B', parameters: '1B', bytes: 551e6, vocabulary: 73_448,
        repository: 'openbmb/BitCPM-CANN-1B-gguf', file: 'bitcpm4-1b-tq2_0.gguf'
      },
      {
        name: 'BitCPM-CANN 3B', parameters: '3B', bytes: 1.1e9, vocabulary: 73_448,
        repository: 'openbmb/BitCPM-CANN-3B-gguf', file: 'bitcpm4-3b-tq2_0.gguf'
      },
      {
        name: 'BitCPM-CANN 8B', parameters: '8B', bytes: 2.37e9, vocabulary: 73_448,
        repository: 'openbmb/BitCPM-CANN-8B-gguf', file: 'bitcpm4-8b-tq2_0.gguf'
      }
    ]
  },
  {
    name: 'Ternary-Bonsai',
    about: 'Can reason before it answers. Files of Q2_0 take some 6 % more than those of PQ2_0.',
    licence: 'Apache-2.0',
    weights: 'PQ2_0',
    note: AS_PUBLISHED,
    models: [
      {
        name: 'Ternary-Bonsai 1.7B', parameters: '1.7B', bytes: 436 * MIB, context: 32_768, vocabulary: 151_669,
        repository: 'prism-ml/Ternary-Bonsai-1.7B-gguf'
      },
      {
        name: 'Ternary-Bonsai 4B', parameters: '4B', bytes: 1020 * MIB, context: 32_768, vocabulary: 151_669,
        repository: 'prism-ml/Ternary-Bonsai-4B-gguf'
      },
      {
        name: 'Ternary-Bonsai 8B', parameters: '8B', bytes: 2.03 * 1024 * MIB, context: 65_536, vocabulary: 151_669,
        repository: 'prism-ml/Ternary-Bonsai-8B-gguf'
      }
    ]
  },
  {
    name: 'Bonsai, 1 bit',
    about: 'About half the download of Ternary-Bonsai, and of its weights in GPU memory. Can reason before it answers.',
    licence: 'Apache-2.0',
    weights: 'Q1_0',
    note: AS_PUBLISHED,
    models: [
      {
        name: 'Bonsai 1.7B', parameters: '1.7B', bytes: 0.24e9, context: 32_768, vocabulary: 151_669,
        repository: 'prism-ml/Bonsai-1.7B-gguf'
      },
      {
        name: 'Bonsai 4B', parameters: '4B', bytes: 0.57e9, context: 32_768, vocabulary: 151_669,
        repository: 'prism-ml/Bonsai-4B-gguf'
      },
      {
        name: 'Bonsai 8B', parameters: '8B', bytes: 1.15e9, context: 65_536, vocabulary: 151_669,
        repository: 'prism-ml/Bonsai-8B-gguf'
      }
    ]
  },
  {
    name: 'Falcon',
    about: 'Its licence has conditions: read it first.',
    licence: 'Falcon licence',
    weights: 'I2_S',
    note: AS_PUBLISHED,
    models: [
      {
        name: 'Falcon-E 1B Instruct', parameters: '1B', bytes: 666e6,
        repository: 'tiiuae/Falcon-E-1B-Instruct-GGUF'
      },
      {
        name: 'Falcon-E 3B Instruct', parameters: '3B', bytes: 1.0e9,
        repository: 'tiiuae/Falcon-E-3B-Instruct-GGUF'
      },
      {
        name: 'Falcon3 7B Instruct, 1.58 bit', parameters: '7B', bytes: 3.27e9, context: 32_768, vocabulary: 131_072,
        repository: 'tiiuae/Falcon3-7B-Instruct-1.58bit-GGUF'
      }
    ]
  }
]
