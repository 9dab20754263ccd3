// Which labels a language has.
import { ENGLISH } from './labels.js'
import type { Labels } from './labels.js'

/** The labels of a language of BCP 47, and the language that they are in: English if there are none of it. */
export async function labelsOf(language: string): Promise<{ labels: Labels, language: string }> {
  const [primary = ''] = language.toLowerCase().split('-')
  if (primary !== '' && primary !== 'en') {
    // If the script cannot be fetched, the widget works all the same.
    const others = await import('./languages.js').catch(() => undefined)
    // Every object has a property `constructor`, and a page may say that this is its language.
    if (others && Object.hasOwn(others.LANGUAGES, primary)) return { labels: others.LANGUAGES[primary]!, language: primary }
  }
  return { labels: ENGLISH, language: 'en' }
}
