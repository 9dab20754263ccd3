// Reports in files: saved, and opened again.
import type { Failure } from 'tritloom/words'
import { create } from '../shared/dom.ts'

/** The subject of a report. */
export type Kind = 'weights' | 'inspect' | 'speed'

/** A report says what it is and which version of its fields it has. */
interface Report<T> {
  tritloom: Kind
  version: 1
  content: T
}

/** JSON has no NaN and no infinities, which the lab is there to find: they are written as `{ "float": "NaN" }`. */
const toJson = (_: string, value: unknown) =>
  typeof value === 'number' && !Number.isFinite(value) ? { float: String(value) } : value
const fromJson = (_: string, value: { float?: unknown } | null) =>
  typeof value?.float === 'string' ? Number(value.float) : value

/** A report as the text of a file. */
export const toText = (kind: Kind, content: unknown): string => {
  const report: Report<unknown> = { tritloom: kind, version: 1, content }
  return JSON.stringify(report, toJson)
}

/** A file is no report that can be shown. The message is a sentence for people. */
export class NoReport extends Error {}

/** The content of a report of this kind. Throws `NoReport` if the text is none. */
export function fromText(kind: Kind, text: string): unknown {
  let report: Partial<Report<unknown>> | null
  try {
    report = JSON.parse(text, fromJson)
  } catch {
    throw new NoReport('This file is no report: it is no JSON.')
  }
  if (typeof report !== 'object' || report === null || report.tritloom === undefined) {
    throw new NoReport('This file is no report of this page.')
  }
  if (report.tritloom !== kind) throw new NoReport(`This is a report on “${report.tritloom}”. Open it there.`)
  if (report.version !== 1) throw new NoReport('This report is of a newer version of this page.')
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
  input: HTMLInputElement, kind: Kind, take: (content: unknown) => void, refuse: (failure: Failure) => void
) {
  input.addEventListener('change', async () => {
    const file = input.files?.[0]
    input.value = '' // So that the same file can be chosen again.
    try {
      if (file) take(fromText(kind, await file.text()))
    } catch (error) {
      // Anything else that is thrown comes from fields that are missing or of another type.
      const message = error instanceof NoReport ? error.message : 'This report is damaged: a part of it is missing.'
      refuse({ code: 'report', message, advice: 'Choose a file that “Save a report” has made on this page.' })
    }
  })
}
