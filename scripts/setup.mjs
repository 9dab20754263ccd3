// Checks what the build needs, and with --tests what the tests need, and installs what is missing.
import { main } from './report.mjs'
import { setUp } from './setup/steps.mjs'

await main(() => setUp({ tests: process.argv.includes('--tests') }))
