// Where things are, as absolute paths, so that every script runs from any directory.
import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

export const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** A path inside the repository. */
export const inRoot = (...parts) => join(ROOT, ...parts)

export const readText = path => readFileSync(inRoot(path), 'utf8')

export const CARGO_HOME = process.env.CARGO_HOME ?? join(homedir(), '.cargo')
export const CARGO_TARGET = resolve(ROOT, process.env.CARGO_TARGET_DIR ?? 'target')

/** The first `name = value` of Cargo.toml, a string or a list of strings: the package's own. */
export const cargoField = name => {
  const found = new RegExp(`^${name} = (".*"|\\[.*\\])$`, 'm').exec(readText('Cargo.toml'))
  if (!found) throw new Error(`Cargo.toml has no ${name}`)
  return JSON.parse(found[1])
}

/** The version of a crate in Cargo.lock. */
export const lockedVersion = crate => {
  const found = new RegExp(`name = "${crate}"\\nversion = "([^"]+)"`).exec(readText('Cargo.lock'))
  if (!found) throw new Error(`Cargo.lock has no ${crate}`)
  return found[1]
}
