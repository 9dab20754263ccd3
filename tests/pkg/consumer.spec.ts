// The package as others get it: the tarball of `npm pack`, installed where nothing else is.
import { execFileSync, spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect, test } from '@playwright/test'
import type { Page } from '@playwright/test'

const PORT = Number(process.env.PORT ?? 8930) + 10
/** The test server's other origin has the model. */
const MODEL = `http://localhost:${Number(process.env.PORT ?? 8930) + 1}/tests/data/golden/golden.gguf`
const VITE = resolve('node_modules/vite/bin/vite.js')
const TSC = resolve('node_modules/typescript/bin/tsc')

let folder: string
const running: ChildProcess[] = []

/** An app of tests/pkg with the tarball installed, outside this repository. */
const install = (app: string) => {
  const at = join(folder, app)
  cpSync(resolve('tests/pkg', app), at, { recursive: true })
  const tarball = readdirSync(folder).find(name => name.endsWith('.tgz'))!
  // The package has no dependencies: nothing is fetched.
  execFileSync('npm', ['install', '--offline', '--no-audit', '--no-fund', join(folder, tarball)], { cwd: at, stdio: 'pipe' })
  return at
}

const serve = async (command: string[], cwd: string, url: string, env: Record<string, string> = {}) => {
  const server = spawn(process.execPath, command, { cwd, env: { ...process.env, ...env }, stdio: 'pipe' })
  let said = ''
  server.stdout?.on('data', text => { said += text })
  server.stderr?.on('data', text => { said += text })
  running.push(server)
  for (let attempt = 0; attempt < 150; attempt++) {
    if (server.exitCode !== null) break
    if (await fetch(url).then(response => response.ok, () => false)) return
    await new Promise(done => setTimeout(done, 200))
  }
  throw new Error(`${command.join(' ')} does not serve ${url}:\n${said}`)
}

const result = async (page: Page, url: string) => {
  const said: string[] = []
  page.on('console', message => said.push(message.text()))
  page.on('pageerror', error => said.push(String(error)))
  await page.goto(url)
  const body = page.locator('body[data-result]')
  await body.waitFor({ state: 'attached', timeout: 120_000 }).catch(() => { throw new Error(`no result from ${url}:\n${said.join('\n')}`) })
  return body.getAttribute('data-result')
}

test.beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'ternlight-consumer-'))
  execFileSync('npm', ['pack', '--pack-destination', folder], { cwd: resolve('pkg'), stdio: 'pipe' })
})

test.afterEach(() => {
  for (const server of running.splice(0)) server.kill()
})

test.afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('a fresh Vite app: types, development server, build', async ({ page }) => {
  const app = install('vite')
  execFileSync(process.execPath, [TSC, '--project', app], { stdio: 'pipe' })

  const origin = `http://localhost:${PORT}`
  await serve([VITE, '--port', String(PORT), '--strictPort'], app, origin)
  for (const worker of ['true', 'false']) {
    expect(await result(page, `${origin}/?worker=${worker}&model=${MODEL}`)).toBe('I am a (3 tokens), I am a')
  }
  running.pop()!.kill()

  execFileSync(process.execPath, [VITE, 'build', '--logLevel', 'error', '--base', './'], { cwd: app, stdio: 'pipe' })
  const built = `http://localhost:${PORT + 1}`
  await serve([VITE, 'preview', '--port', String(PORT + 1), '--strictPort'], app, built)
  for (const worker of ['true', 'false', 'mine']) {
    expect(await result(page, `${built}/?worker=${worker}&model=${MODEL}`)).toBe('I am a (3 tokens), I am a')
  }
})

test('a page without a bundler', async ({ page }) => {
  const app = install('plain')
  const port = PORT + 2
  await serve([resolve('tests/web/server.mjs')], app, `http://localhost:${port}/control/count`, { PORT: String(port), ROOT: app })
  expect(await result(page, `http://localhost:${port}/index.html?model=${MODEL}`)).toBe('I am a')
})
