// `npm run train:smoke`: trains a tiny model and an adapter, and checks their files. It needs pkg/ and PyTorch.
import { heading, main } from './report.mjs'
import { smokeTraining } from './train/smoke.mjs'

await main(async () => heading(`train:smoke: ${(await smokeTraining()) ?? 'all is right'}`))
