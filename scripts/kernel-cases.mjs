// Runs the cases of tests/kernels in a browser, on its GPU.
//
//   node scripts/kernel-cases.mjs [--browser chromium|firefox] [--files rms_norm,attention] [--json FILE [--on ADAPTER]]
//                                 [--no-build]
//   node scripts/kernel-cases.mjs --serve [--no-build]
//   node scripts/kernel-cases.mjs --table FILE...
//
//   --files     only the cases in these files of tests/kernels/cases
//   --json      writes the raw result there
//   --on        the adapter's name, for a browser that does not say it
//   --no-build  takes what was built, for a machine without Rust
//   --serve     serves the page to any browser, in which a button runs the cases
//   --table     prints a table of results that were written before
//
// CHROMIUM and CHROMIUM_GPU_FLAGS, or FIREFOX, name the browser, as for `npm run bench`.
import { readFileSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { openAlone } from './bench/open.mjs'
import { serve } from './bench/server.mjs'
import { buildKernelCases } from './build/kernel-cases.mjs'
import { buildPackage } from './build/pkg.mjs'
import { kernelTable, outcome } from './kernel-table.mjs'
import { heading, main, Stop } from './report.mjs'
import { browser as browserStep } from './setup/browser.mjs'
import { ensure, setUp } from './setup/steps.mjs'

await main(async () => {
  const { values: options, positionals } = parseArgs({
    allowNegative: true,
    allowPositionals: true,
    options: {
      browser: { type: 'string', default: 'chromium' },
      files: { type: 'string' },
      json: { type: 'string' },
      on: { type: 'string' },
      build: { type: 'boolean', default: true },
      serve: { type: 'boolean', default: false },
      table: { type: 'boolean', default: false }
    }
  })
  if (!['chromium', 'firefox'].includes(options.browser))
    throw new Stop(`--browser takes chromium or firefox, not \`${options.browser}\`.`)
  if (options.table)
    return heading(kernelTable(positionals.map(path => JSON.parse(readFileSync(path, 'utf8')))))
  if (options.build) {
    await setUp()
    await ensure(browserStep)
    buildPackage()
    buildKernelCases()
  }
  const server = await serve('')
  if (options.serve) return heading(`${server.address}/tests/web/kernel-cases.html`)
  try {
    const result = { ...(options.on && { on: options.on }), ...(await runIn(server, options)) }
    if (options.json) writeFileSync(options.json, `${JSON.stringify(result, null, 1)}\n`)
    heading(outcome(result))
    if (result.cases.length === 0 || result.cases.some(({ failed }) => failed)) process.exitCode = 1
  } finally {
    server.close()
  }
})

/** The result of a browser that does nothing else. */
async function runIn(server, { browser: name, files }) {
  const browser = await openAlone(server, name)
  try {
    const { answer } = await browser.ask(async files => {
      const { runCases } = await import('/tests/web/kernel-cases.mjs')
      return runCases({ files })
    }, files?.split(','))
    return answer
  } finally {
    await browser.close()
  }
}
