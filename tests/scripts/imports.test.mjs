// The commands that a fresh clone runs. They install packages, so nothing that they read first may import one.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { test } from 'node:test'
import { ROOT } from '../../scripts/paths.mjs'

/** The names of the modules that `file` needs at once: `import()` comes later and does not count. */
const imports = file =>
  [...readFileSync(file, 'utf8').matchAll(/^(?:import|export)\b(?:[\w\s{},*$]*?\bfrom)? '([^']+)'/gm)].map(found => found[1])

/** `file` and all that it imports, each once. */
const graph = (file, seen = new Set()) => {
  if (seen.has(file)) return seen
  seen.add(file)
  for (const name of imports(file)) if (name.startsWith('.')) graph(join(dirname(file), name), seen)
  return seen
}

for (const script of ['start', 'test', 'setup', 'build', 'docs', 'lighthouse', 'fuzz', 'bench', 'train-smoke']) {
  test(`scripts/${script}.mjs imports no package before it has installed them`, () => {
    const files = [...graph(join(ROOT, 'scripts', `${script}.mjs`))]
    assert(files.length > 1, 'it imports something')
    const packages = files.flatMap(file =>
      imports(file)
        .filter(name => !name.startsWith('.') && !isBuiltin(name))
        .map(name => `${relative(ROOT, file)}: ${name}`)
    )
    assert.deepEqual(packages, [])
  })
}
