// Makes the publishable package in pkg/ from the crate and pkg-template/.
import { buildPackage } from './build/pkg.mjs'
import { main } from './report.mjs'
import { setUp } from './setup/steps.mjs'

await main(() => {
  setUp()
  buildPackage()
})
