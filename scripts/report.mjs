// Lines about steps: what it is, what came of it, how long it took.

const WIDTH = 22

export const seconds = ms => `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 0)} s`

const write = text => process.stdout.write(text)

/** Prints the name of a step now, and the rest of its line when `finish` is called. */
export const begin = name => {
  const start = performance.now()
  write(`  ${name.padEnd(WIDTH)}`)
  return {
    note: text => write(`${text} … `),
    finish: outcome => write(`${outcome}  (${seconds(performance.now() - start)})\n`)
  }
}

export const heading = text => write(`${text}\n`)

/** A table of steps at the end of a run. */
export const summary = (title, rows) => {
  write(`\n${title}\n`)
  for (const { name, outcome, note = '', ms } of rows) {
    write(`  ${outcome.padEnd(7)} ${name.padEnd(30)} ${note.padEnd(24)} ${seconds(ms).padStart(8)}\n`)
  }
}

/** An error whose message is for the user as it stands: no stack. */
export class Stop extends Error {}

/** Runs a script's main function; a failure is told plainly and sets the exit code. */
export const main = async body => {
  try {
    await body()
  } catch (error) {
    process.stderr.write(`\n${error instanceof Stop ? error.message : error.stack}\n`)
    process.exit(1)
  }
}
