// Builds the Rust tests and runs them, with the time that each test takes.
//
// libtest prints times only where unstable options are allowed. Allowing them for `cargo test`
// would rebuild every crate whose build script reads RUSTC_BOOTSTRAP. So cargo only builds the
// tests, and the variable is set for the test programs alone.
import { tmpdir } from 'node:os'
import { ROOT } from '../paths.mjs'
import { outputOf, runHearing } from '../process.mjs'

/** Mesa's drivers complain on every start where this is not set. */
const QUIET = { XDG_RUNTIME_DIR: process.env.XDG_RUNTIME_DIR ?? tmpdir() }

const TIMES = ['-Zunstable-options', '--report-time']

/** Builds the tests; `{ name, path }` of each test program. */
export const buildTests = async () =>
  testPrograms(
    await outputOf('cargo', ['test', '--no-run', '--message-format=json-render-diagnostics'])
  )

/** The test programs that cargo's JSON messages name. */
export const testPrograms = messages =>
  messages
    .split('\n')
    .filter(line => line.startsWith('{'))
    .map(line => JSON.parse(line))
    .filter(
      ({ reason, profile, executable }) =>
        reason === 'compiler-artifact' && profile.test && executable
    )
    .map(({ target, executable }) => ({
      name: target.kind.includes('test')
        ? target.name
        : `src (${target.kind.includes('bin') ? 'bin' : 'lib'})`,
      path: executable
    }))
    // Cargo names them in the order in which they happen to be built.
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))

/** Runs test programs one after the other; the first that fails ends it. */
export const runTests = async (programs, hear, { args = [], env = {} } = {}) => {
  for (const { name, path } of programs) {
    const heading = `\n     Running ${name}\n`
    process.stdout.write(heading)
    hear(heading)
    await runHearing(path, [...TIMES, ...args], hear, {
      env: { ...env, ...QUIET, RUSTC_BOOTSTRAP: '1', CARGO_MANIFEST_DIR: ROOT }
    })
  }
}

/** The examples in the documentation, which rustdoc builds and runs by itself. */
export const runDocTests = hear => runHearing('cargo', ['test', '--doc', '--quiet'], hear)
