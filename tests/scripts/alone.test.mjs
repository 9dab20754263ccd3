// The browser of the benchmark. A program stands in for it, and answers as alone.html does.
import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { chromiumFlags, LoneBrowser } from '../../scripts/bench/alone.mjs'

const PAGE = `
  const asks = new URL(process.argv.at(-1)).searchParams.get('asks')
  for (let found = {}; ; ) {
    const response = await fetch(asks, { method: 'POST', body: JSON.stringify(found) })
    const { work, argument } = await response.json()
    found = { answer: await (0, eval)('(' + work + ')')(argument) }
  }`

/** The program that lists the driver's caches and their content, and adds a file to them. */
const caches = async () => {
  const { readdirSync, writeFileSync } = await process.getBuiltinModule('node:fs')
  const { __GL_SHADER_DISK_CACHE_PATH: nvidia, MESA_SHADER_CACHE_DIR: mesa } = process.env
  const found = { nvidia, mesa, files: readdirSync(nvidia) }
  writeFileSync(`${nvidia}/compiled`, '')
  return found
}

test('each new browser has an empty cache of the driver, which lasts until it is closed', async t => {
  // The browser of this test is a shell script, which Windows cannot start.
  if (process.platform === 'win32') return t.skip('the program is a shell script')
  const folder = mkdtempSync(join(tmpdir(), 'tritloom-alone-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const [page, browser] = ['page.mjs', 'browser'].map(name => join(folder, name))
  writeFileSync(page, PAGE)
  writeFileSync(browser, `#!/bin/sh\nexec "${process.execPath}" "${page}" "$@"\n`, { mode: 0o755 })
  const visits = async () => {
    const lone = await LoneBrowser.open(browser, chromiumFlags([]), 'http://localhost/')
    try {
      const [first, second] = [await lone.ask(caches), await lone.ask(caches)]
      assert.deepEqual([first.answer.files, second.answer.files], [[], ['compiled']])
      assert.equal(first.answer.mesa, first.answer.nvidia)
      return first.answer.nvidia
    } finally {
      await lone.close()
    }
  }
  const [one, other] = [await visits(), await visits()]
  assert.notEqual(one, other)
  assert.deepEqual([one, other].filter(existsSync), [])
})
