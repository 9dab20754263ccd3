// `npm run fuzz`: tries random input on each fuzz target for as long as one likes.
//
//   npm run fuzz -- 600       ten minutes for each target; the default is one minute
//
// `cargo test`, and with it `npm test`, tries each target for a second or less.
import { run } from './process.mjs'
import { main, Stop } from './report.mjs'
import { setUpNative } from './setup/steps.mjs'

await main(async () => {
  const seconds = Number(process.argv[2] ?? process.env.FUZZ_SECONDS ?? 60)
  if (!(seconds > 0)) throw new Stop('Usage: npm run fuzz -- [SECONDS]')
  await setUpNative()
  run('cargo', ['test', '--test', 'fuzz', '--', '--nocapture'], {
    env: { FUZZ_SECONDS: String(seconds) }
  })
})
