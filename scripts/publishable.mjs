// Ends with an error, and says why, if nothing may be published from here.
//
//   node scripts/publishable.mjs          the site
//   node scripts/publishable.mjs v1.2.3   the release with this tag
import { address } from './build/package.mjs'
import { refusals } from './build/publishable.mjs'
import { cargoField } from './paths.mjs'
import { heading, main, Stop } from './report.mjs'

await main(() => {
  const { GITHUB_SERVER_URL: host, GITHUB_REPOSITORY: name } = process.env
  const place = host && name ? `${host}/${name}` : undefined
  const why = refusals({ address: address(), version: cargoField('version'), place, tag: process.argv[2] })
  if (why.length > 0) throw new Stop(`Not published: ${why.join('; ')}.`)
  heading('This may be published.')
})
