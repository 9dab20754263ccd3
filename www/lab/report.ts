// Reports in files: saved, and opened again.
import { create } from '../shared/dom.ts'

/** The subject of a report. */
export type Kind = 'weights' | 'inspect' | 'speed'

/** A report says what it is and which version of its fields it has. */
interface Report<T> {
  tritloom: Kind
  version: 1
  content: T
}

/** A report as the text of a file. Arrays of floats become plain arrays. */
export const toText = (kind: Kind, content: unknown): string => {
  const report: Report<unknown> = { tritloom: kind, version: 1, content }
  return JSON.stringify(report, (_, value) => value instanceof Float32Array ? [...value] : value, 1)
}

/** The content of a report of this kind. Throws with a sentence for people if the text is none. */
export function fromText(kind: Kind, text: string): unknown {
  let report: Partial<Report<unknown>> | null
  try {
    report = JSON.parse(text)
  } catch {
    throw new Error('This file is no report: it is no JSON.')
  }
  if (typeof report !== 'object' || report === null || report.tritloom === undefined) {
    throw new Error('This file is no report of this page.')
  }
  if (report.tritloom !== kind) throw new Error(`This is a report on “${report.tritloom}”. Open it there.`)
  if (report.version !== 1) throw new Error('This report is of a newer version of this page.')
  return report.content
}

/** Gives the reader a report as a file. */
export function save(kind: Kind, content: unknown) {
  const url = URL.createObjectURL(new Blob([toText(kind, content)], { type: 'application/json' }))
  const link = create('a')
  link.href = url
  link.download = `tritloom-${kind}.json`
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), 60_000)
}

/** Calls `take` with each report that the reader chooses with `input`, and `refuse` with what is wrong with another file. */
export function onReport(
  input: HTMLInputElement, kind: Kind, take: (content: unknown) => void, refuse: (error: unknown) => void
) {
  input.addEventListener('change', async () => {
    const file = input.files?.[0]
    input.value = '' // So that the same file can be chosen again.
    try {
      if (file) take(fromText(kind, await file.text()))
    } catch (error) {
      refuse(error)
    }
  })
}
