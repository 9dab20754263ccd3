// `npm run docs`: the documentation as static pages, beside the demos in dist/.
//
//   dist/docs/            the guide, the other documents and the API reference, made by TypeDoc
//   dist/llms.txt         what there is to read, for programs that read
//   dist/llms-full.txt    all of it
import { buildPackage } from './build/pkg.mjs'
import { buildDemos } from './demos.mjs'
import { buildDocs } from './docs/build.mjs'
import { heading, main } from './report.mjs'
import { setUp } from './setup/steps.mjs'

await main(async () => {
  await setUp()
  buildPackage()
  buildDemos({ docs: true })
  await buildDocs()
  heading('\ndist/ is a static site: the demos, docs/, llms.txt and llms-full.txt.')
})
