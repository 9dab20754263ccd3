// Apps that have the package as others get it: the tarball of `npm pack`, installed outside of this
// repository.
import { execFileSync, spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { test as base, expect } from '@playwright/test'
import type { Page } from '@playwright/test'
import { ELSEWHERE, PORT as SERVER } from '../web/ports'

export { expect }

export const MODEL = `${ELSEWHERE}/tests/data/golden/golden.gguf`
/** Ports for the apps. */
export const PORT = SERVER + 10

type Serve = (command: string[], cwd: string, url: string, env?: Record<string, string>) => Promise<() => void>

/**
 * `install` makes an app of a folder in tests/pkg, with the tarball installed, and gives its path.
 * `serve` starts a server, waits until it answers, and gives a function that stops it.
 */
export const test = base.extend<{ serve: Serve }, { install: (app: string) => string }>({
  install: [
    async ({}, use) => {
      const folder = mkdtempSync(join(tmpdir(), 'tritloom-consumer-'))
      execFileSync('npm', ['pack', '--pack-destination', folder], { cwd: resolve('pkg'), stdio: 'pipe' })
      const tarball = join(folder, readdirSync(folder).find(name => name.endsWith('.tgz'))!)
      await use(app => {
        const at = join(folder, app)
        cpSync(resolve('tests/pkg', app), at, { recursive: true })
        // The package has no dependencies: an app that has none either fetches nothing.
        const { devDependencies } = JSON.parse(readFileSync(join(at, 'package.json'), 'utf8'))
        const where = devDependencies ? '--prefer-offline' : '--offline'
        const options = [where, '--no-save', '--no-package-lock', '--no-audit', '--no-fund']
        execFileSync('npm', ['install', ...options, tarball], { cwd: at, stdio: 'pipe' })
        return at
      })
      rmSync(folder, { recursive: true, force: true })
    },
    { scope: 'worker' }
  ],
  serve: async ({}, use) => {
    const running: ChildProcess[] = []
    await use(async (command, cwd, url, env = {}) => {
      const server = spawn(process.execPath, command, { cwd, env: { ...process.env, ...env }, stdio: 'pipe' })
      let said = ''
      server.stdout?.on('data', text => { said += text })
      server.stderr?.on('data', text => { said += text })
      running.push(server)
      for (let attempt = 0; attempt < 150 && server.exitCode === null; attempt++) {
        if (await fetch(url).then(response => response.ok, () => false)) return () => void server.kill()
        await new Promise(done => setTimeout(done, 200))
      }
      throw new Error(`${command.join(' ')} does not serve ${url}:\n${said}`)
    })
    for (const server of running) server.kill()
  }
})

/** The arguments with which `serve` serves the files of an app. */
export const filesOf = (app: string, port: number): Parameters<Serve> =>
  [[resolve('tests/web/server.mjs')], app, `http://localhost:${port}/control/count`, { PORT: String(port), ROOT: app }]

/** The text that a page writes into itself. */
export const result = async (page: Page, url: string) => {
  const said: string[] = []
  page.on('console', message => said.push(message.text()))
  page.on('pageerror', error => said.push(String(error)))
  await page.goto(url)
  const body = page.locator('body[data-result]')
  await body.waitFor({ state: 'attached', timeout: 120_000 }).catch(() => { throw new Error(`no result from ${url}:\n${said.join('\n')}`) })
  return body.getAttribute('data-result')
}
