// The chat page: connects its parts. Each part knows its own area of the page and no other part.
import { describeFailure, type Advice } from 'tritloom/words'
import { byId } from '../shared/dom.ts'
import { createKnown } from '../shared/model/known.ts'
import { createLoader } from '../shared/model/loader.ts'
import { noticeBox, showLoss, showNotice } from '../shared/notices.ts'
import { createComposer } from './composer.ts'
import { showInfo } from './info.ts'
import { createPicker } from './picker.ts'
import { offerThinking, readSampling } from './sampling.ts'
import { Session } from './session.ts'
import { createTranscript } from './transcript.ts'

const ADVICE: Advice = {
  'context-full': 'Write less, or start a new chat.',
  'device-lost': 'Send it again: that brings the model back.'
}

const session = new Session(() => showLoss('message'))
const transcript = createTranscript()
const newChat = byId('new-chat', HTMLButtonElement)

const composer = createComposer({ send, stop: () => session.stop() })
const loader = createLoader({
  load: (source, options) => session.load(source, options),
  info: () => session.info,
  onLoad() {
    newChat.disabled = true
    composer.ready(false)
    showInfo(null)
    transcript.clear()
  },
  onReady() {
    showInfo(session.info)
    offerThinking(session.info.thinking)
    newChat.disabled = false
    composer.ready(true)
  },
  onAddress: address => picker.showAddress(address)
})
const picker = createPicker(loader.load)

createKnown((address, name) => {
  picker.showAddress(address)
  void loader.load({ source: address, name })
})

newChat.addEventListener('click', () => {
  session.newChat()
  transcript.clear()
  composer.focus()
})
transcript.onSuggestion(text => composer.write(text))

await loader.start(() => picker.choice())

async function send(text: string) {
  const options = readSampling()
  if (!options) return
  const turn = transcript.addTurn(text)
  composer.busy(true)
  if (session.isLost) showNotice('loss', noticeBox('Bringing the model back …'))
  try {
    const answer = session.send(text, options)
    for await (const token of answer.tokens) {
      showNotice('loss', null)
      turn.append(token)
    }
    turn.finish(await answer.stats, options.seed)
  } catch (error) {
    turn.fail(describeFailure(error, ADVICE))
    composer.giveBack(text)
  } finally {
    composer.busy(false)
  }
}
