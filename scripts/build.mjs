// Makes the publishable package in pkg/ from the crate and pkg-template/.
//
// --no-setup: what the build needs is known to be there.
import { buildPackage } from './build/pkg.mjs'
import { main } from './report.mjs'
import { setUp } from './setup/steps.mjs'

await main(async () => {
  if (!process.argv.includes('--no-setup')) await setUp()
  buildPackage()
})
