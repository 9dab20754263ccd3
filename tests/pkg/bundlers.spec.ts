// The package with bundlers that nothing else here needs. Installing them fetches hundreds of megabytes,
// so this is only in a run of everything.
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, filesOf, MODEL, PORT, result, test } from './consumer'

/** Three tokens from the CPU and from the GPU, an answer in a format, one of `LanguageModel`, and the model's file written by the worker inside the worker. */
const EXPECTED = 'I am a, I am a, yes, I am a, 1 file'

test.describe('with', { tag: '@all' }, () => {
  test.describe.configure({ timeout: 600_000 })

  let installed: string | undefined
  const app = (install: (app: string) => string) => installed ??= install('bundlers')

  for (const [index, bundler] of ['webpack', 'esbuild', 'rollup'].entries()) {
    test(bundler, async ({ page, install, serve }) => {
      const at = app(install)
      execFileSync(process.execPath, [`${bundler}.mjs`], { cwd: at, stdio: 'pipe' })
      const port = PORT + 4 + 2 * index
      await serve(...filesOf(at, port))
      expect(await result(page, `http://localhost:${port}/dist/${bundler}/index.html?model=${MODEL}`)).toBe(EXPECTED)
    })
  }

  test('Next.js, which renders the page on the server first', async ({ page, install, serve }) => {
    const at = app(install)
    const next = join(at, 'node_modules', 'next', 'dist', 'bin', 'next')
    execFileSync(process.execPath, [next, 'build'], { cwd: at, stdio: 'pipe', env: { ...process.env, NEXT_TELEMETRY_DISABLED: '1' } })
    const origin = `http://localhost:${PORT + 3}`
    await serve([next, 'start', '--port', String(PORT + 3)], at, origin)
    expect(await (await fetch(origin)).text()).toContain('The server has rendered this.')
    expect(await result(page, `${origin}/?model=${MODEL}`)).toBe(EXPECTED)
  })
})
