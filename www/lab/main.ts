// The lab: connects its tabs with the model of the page.
import { byId } from '../shared/dom.ts'
import { HeldModel } from '../shared/model/held.ts'
import { createKnown } from '../shared/model/known.ts'
import { createLoader } from '../shared/model/loader.ts'
import { showLoss } from '../shared/notices.ts'
import { keepPages } from '../shared/offline.ts'
import { inspectModel, startInspect } from './inspect.ts'
import { speedModel, startSpeed } from './speed.ts'
import { startTabs } from './tabs.ts'
import { startWeights } from './weights.ts'

const held = new HeldModel(() => showLoss('measurement'))

const loader = createLoader({
  load: (source, options) => held.load(source, options),
  info: () => held.info,
  onLoad: () => give(undefined),
  onReady: () => give(held.model)
})

const give = (model: typeof held.model | undefined) => {
  inspectModel(model)
  speedModel(model)
}

createKnown((address, name) => void loader.load({ source: address, name }))
startTabs()
startWeights((source, name) => void loader.load({ source, name }))
startInspect()
startSpeed()
void keep()
await loader.start()

/** Keeps the pages. */
async function keep() {
  const state = byId('offline-state', HTMLElement)
  try {
    if (await keepPages('../')) state.textContent = 'This page is kept and opens offline.'
  } catch (error) {
    state.textContent = `This page could not be kept: ${error instanceof Error ? error.message : error}`
  }
}
