// Lines about steps: the name of each, its outcome and its time.

const WIDTH = 22

export const seconds = ms => `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 0)} s`

const write = text => process.stdout.write(text)

/** Text without the codes that colour it in a terminal. */
export const plain = text => text.replace(/\u001b\[[0-9;]*m/g, '')

/**
 * Prints the name of a step, and the rest of its line when `finish` is called. `later`: prints the
 * whole line at the end, because other steps run at the same time.
 */
export const begin = (name, { later = false } = {}) => {
  const start = performance.now()
  const first = `  ${name.padEnd(WIDTH)}`
  if (!later) write(first)
  return {
    note: text => write(`${text} … `),
    finish: outcome =>
      write(`${later ? first : ''}${outcome}  (${seconds(performance.now() - start)})\n`)
  }
}

export const heading = text => write(`${text}\n`)

/** A table of steps, as text. */
export const summary = (title, rows) => {
  const lines = rows.map(
    ({ name, outcome, note = '', ms }) =>
      `  ${outcome.padEnd(7)} ${name.padEnd(30)} ${note.padEnd(24)} ${seconds(ms).padStart(8)}`
  )
  return [title, ...lines].join('\n')
}

/** An error whose message is for the user as it is: no stack. */
export class Stop extends Error {}

/** Runs a script's main function; prints a failure and sets the exit code. */
export const main = async body => {
  try {
    await body()
  } catch (error) {
    process.stderr.write(`\n${error instanceof Stop ? error.message : error.stack}\n`)
    process.exit(1)
  }
}
