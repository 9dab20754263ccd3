// The lab: connects its tabs with the model of the page.
import type { ModelInfo } from 'tritloom'
import { byId } from '../shared/dom.ts'
import { HeldModel } from '../shared/model/held.ts'
import { createKnown } from '../shared/model/known.ts'
import { createLoader } from '../shared/model/loader.ts'
import { showLoss } from '../shared/notices.ts'
import { sayKept } from '../shared/offline.ts'
import { inspectModel, startInspect } from './inspect.ts'
import { speedModel, startSpeed } from './speed.ts'
import { startTabs } from './tabs.ts'
import { startWeights } from './weights.ts'

const held = new HeldModel(() => showLoss('measurement'))

const loader = createLoader({
  load: (source, options) => held.load(source, options),
  info: () => held.info,
  onLoad: () => give(undefined),
  onReady: () => give(held.info)
})

const give = (info: ModelInfo | undefined) => {
  inspectModel(info)
  speedModel(info)
}

createKnown((address, name) => void loader.load({ source: address, name }))
startTabs()
startWeights((source, name) => void loader.load({ source, name }))
startInspect(held)
startSpeed(held)
void sayKept('../', byId('offline-state', HTMLElement))
await loader.start()
