// Installs the interfaces that the browser lacks.
import { DecisionModel } from './decision-model.js'
import { QuotaExceededError } from './errors.js'
import { LanguageModel } from './language-model.js'
import { CreateMonitor } from './monitor.js'
import { SemanticEmbedder } from './semantic-embedder.js'
import { configure } from './shared-model.js'
import { Summarizer } from './summarizer.js'
import { LanguageModelToolCall, LanguageModelToolError, LanguageModelToolSuccess } from './tool-values.js'

export { configure }
export type { Download, Settings } from './settings.js'

/** Interfaces, each with those that are only of use with it. */
const INTERFACES: object[] = [
  { LanguageModel, LanguageModelToolCall, LanguageModelToolError, LanguageModelToolSuccess },
  { Summarizer },
  { DecisionModel },
  { SemanticEmbedder },
  { CreateMonitor },
  { QuotaExceededError }
]

for (const together of INTERFACES) {
  // A browser's own sessions know nothing of this package's classes.
  if (Object.keys(together)[0]! in globalThis) continue
  for (const [name, value] of Object.entries(together)) {
    if (!(name in globalThis)) Object.defineProperty(globalThis, name, { value, writable: true, configurable: true })
  }
}
