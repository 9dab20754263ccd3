// The rules by which two models are compared. docs/TRAINING.md states the bar.
const MAX_POINTS = 2

/** The sheet for the judge, and the key: which model wrote X, for each prompt. `swaps` throws a coin. */
export function sheet(prompts, old, other, swaps) {
  const key = {}
  const parts = prompts.map(({ id, kind, prompt, right }) => {
    key[id] = swaps() ? { X: 'new', Y: 'old' } : { X: 'old', Y: 'new' }
    const of = name => (key[id][name] === 'new' ? other : old)[id]
    const asked = typeof prompt === 'string' ? prompt : prompt.map(({ role, content }) => `[${role}] ${content}`).join('\n')
    return `## ${id} (${kind})\n\n${asked}\n\n**Right:** ${right}\n\n**X:** ${of('X')}\n\n**Y:** ${of('Y')}\n`
  })
  return { text: parts.join('\n'), key }
}

/** The points of both models, for each kind of prompt and for all. */
export function count(prompts, points, key) {
  const rows = {}
  for (const { id, kind } of prompts) {
    for (const name of ['X', 'Y']) {
      const given = points[id]?.[name]
      if (!Number.isInteger(given) || given < 0 || given > MAX_POINTS) throw new Error(`Prompt ${id}, ${name}: ${given} is not 0, 1 or 2`)
      for (const row of [kind, 'all']) {
        rows[row] ??= { old: 0, new: 0, of: 0 }
        rows[row][key[id][name]] += given
      }
    }
    for (const row of [kind, 'all']) rows[row].of += MAX_POINTS
  }
  return rows
}

/** The points by kind, and both models' answers to each prompt with their points. */
export function record(prompts, old, other, points, key) {
  const answers = prompts.map(({ id, kind }) => {
    const given = Object.fromEntries(['X', 'Y'].map(name => [key[id][name], points[id][name]]))
    return { id, kind, old: { answer: old[id], points: given.old }, new: { answer: other[id], points: given.new } }
  })
  return { points: count(prompts, points, key), answers }
}

/** Whether the new model is to replace the old one: every row has to hold. */
export const verdict = ({ all, summary, instruction, story }) => [
  { what: `110 points or more: ${all.new}`, holds: all.new >= 110 },
  { what: `at least 40 more than the old one: ${all.new - all.old}`, holds: all.new - all.old >= 40 },
  { what: `24 of 40 or more in summary, and no fewer than the old one: ${summary.new} and ${summary.old}`, holds: summary.new >= 24 && summary.new >= summary.old },
  { what: `36 of 60 or more in instruction: ${instruction.new}`, holds: instruction.new >= 36 },
  { what: `at most 2 fewer in story: ${story.new} and ${story.old}`, holds: story.new >= story.old - 2 }
]
