// The chat page: connects its parts. Each part knows its own area of the page and no other part.
import { BitNet } from 'tritloom'
import { describeFailure, type Advice } from 'tritloom/words'
import { byId } from '../shared/dom.ts'
import { createKnown } from '../shared/model/known.ts'
import { BUNDLED, createLoader } from '../shared/model/loader.ts'
import { checkAvailable, failureBox, noticeBox, showLoss, showNotice } from '../shared/notices.ts'
import { keepPages } from '../shared/offline.ts'
import { Chats, type Outcome } from './chats.ts'
import { createComposer } from './composer.ts'
import { messagesOf, siblingsOf, type Settings, type Turn } from './conversation.ts'
import { showInfo } from './info.ts'
import { openId } from './kept.ts'
import { Library } from './library.ts'
import { promptOf } from './link.ts'
import { createList } from './list.ts'
import { createPanels } from './panels.ts'
import { createPicker } from './picker.ts'
import { offerThinking, readSettings } from './sampling.ts'
import { Session } from './session.ts'
import { say } from './speaker.ts'
import { askBefore, keepModel, lastModel } from './start.ts'
import { createStatus } from './status.ts'
import { openStore } from './store.ts'
import { createStored } from './stored.ts'
import { createTranscript } from './transcript.ts'

/** `isKept` says that a part of the answer came and is kept. */
const adviceFor = (isKept: boolean): Advice => ({
  'context-full': 'Write less, start a new chat, or choose a model with a longer context.',
  'device-lost': `${isKept ? 'Press Continue' : 'Send it again'}: that brings the model back.`,
  'bad-option': 'Look at the settings: Defaults brings back those of this page.',
  'bad-template': 'Choose another model.'
})

const UNKEPT =
  'This browser does not let the page keep chats: they are gone when it is closed. Export what you want to keep.'

const session = new Session(() => showLoss('message'))
const library = new Library(await openStore(), {
  onChange(elsewhere) {
    list.show()
    if (elsewhere !== undefined) void chats.changedElsewhere(elsewhere)
  },
  onUnstored(error) {
    // It is told once, and not with each word of an answer.
    if (document.querySelector('[data-notice="unstored"]')) return
    const advice = 'Delete chats or stored models to make room, and export what you want to keep.'
    showNotice('unstored', failureBox('The chat could not be kept', { ...describeFailure(error), advice }))
  }
})
const chats = new Chats(session, library, {
  onShow: show,
  onToken(turn, token) {
    showNotice('loss', null)
    transcript.append(turn, token)
    status.onToken()
  },
  onEnd,
  onEndElsewhere: () => list.show()
})
const newChat = byId('new-chat', HTMLButtonElement)
const panels = createPanels()
const transcript = createTranscript({
  edit(turn, text) {
    if (turn.role === 'assistant') chats.editAnswer(turn, text)
    else withSettings(settings => chats.editQuestion(turn, text, settings))
  },
  regenerate: turn => withSettings(settings => chats.regenerate(turn, settings)),
  goOn: turn => withSettings(settings => chats.goOn(turn, settings)),
  giveResults: (turn, results) => withSettings(settings => chats.giveResults(turn, results, settings)),
  branch: turn => void chats.branch(turn),
  choose(turn, step) {
    chats.choose(turn, step)
    const shown = chats.path.find(({ parent }) => parent === turn.parent)
    if (shown) transcript.focus(shown, step < 0 ? 'Branch before' : 'Branch after')
  }
})
const status = createStatus((messages, options) => session.model.countTokens(messages, options))
const list = createList(chats, library, () => panels.close())

const composer = createComposer({
  send(text, files) {
    withSettings(settings => {
      composer.clear()
      chats.ask(text, files, settings)
    })
  },
  stop: () => chats.stop(),
  linkedModel: () => (chats.model?.startsWith('http') && chats.model !== BUNDLED.source ? chats.model : undefined)
})
const loader = createLoader({
  load: (source, options) => session.load(source, options),
  info: () => session.info,
  onLoad() {
    chats.stopAll()
    chats.model = undefined
    newChat.disabled = true
    composer.ready(false)
    panels.close()
    status.setModel(undefined)
    showInfo(null)
    show(false)
  },
  onReady(choice) {
    const { info, model } = session
    showInfo(info)
    offerThinking(info.thinking)
    status.setModel(info)
    newChat.disabled = false
    composer.ready(true)
    chats.model = typeof choice.source === 'string' ? choice.source : choice.name
    keepModel(choice)
    void model.stored.then(() => stored.update())
    show(false)
    chats.resume()
  },
  onFailure: () => stored.update(),
  onAddress: address => picker.showAddress(address)
})
const picker = createPicker(loader.load)
const stored = createStored(address => load(address))

createKnown(load)

newChat.addEventListener('click', () => {
  panels.close()
  void chats.open().then(() => composer.focus())
})
transcript.onSuggestion(text => composer.write(text))
// The page may be closed at any time after these.
document.addEventListener('visibilitychange', () => chats.saveAll())
addEventListener('pagehide', () => chats.saveAll())
addEventListener('hashchange', takePrompt)

if (!library.isLasting) showNotice('unkept', noticeBox(UNKEPT))
await library.read()
const last = openId.get()
await chats.open(last !== undefined && library.conversations.has(last) ? last : undefined)
await start()
// A page that cannot be kept works as well, with a network.
keepPages('../').catch(() => {})

async function start() {
  const prompt = takePrompt()
  const isNamed = new URLSearchParams(location.search).has('model')
  const before = isNamed ? undefined : await lastModel()
  if (before) picker.showAddress(before.source as string)
  if (before || isNamed || !prompt) return loader.start(() => before ?? picker.choice())
  if (await checkAvailable(BitNet.availability())) await askBefore(loader.load)
}

/** Writes the prompt of the link into a new chat. Returns it; empty if there is none. */
function takePrompt(): string {
  const prompt = promptOf(location.hash)
  if (!prompt) return ''
  void chats.open().then(() => composer.write(prompt))
  // A reload would bring the prompt again.
  history.replaceState(null, '', location.pathname + location.search)
  return prompt
}

function load(address: string, name = address) {
  picker.showAddress(address)
  void loader.load({ source: address, name })
}

/** Does something with the settings, if they can be used, and a model is there that writes no answer of this chat yet. */
function withSettings(act: (settings: Settings) => void) {
  const settings = chats.model === undefined || chats.isBusy ? null : readSettings()
  if (!settings) return
  if (session.isLost) showNotice('loss', noticeBox('Bringing the model back …'))
  status.begin()
  act(settings)
}

/** Shows the branch that is open. */
function show(toEnd: boolean) {
  const { path, turns, isBusy } = chats
  openId.set(chats.conversation?.id)
  showNotice('deleted', null)
  transcript.show(path.map(turn => ({ turn, position: positionOf(turn) })), toEnd)
  composer.busy(isBusy)
  list.show()
  if (!isBusy) {
    const { system, options } = [...path].reverse().find(({ settings }) => settings)?.settings ?? {}
    const { tools, toolChoice } = options ?? {}
    void status.setMessages(messagesOf(path, system), tools ? { tools, ...(toolChoice && { toolChoice }) } : {})
  }

  function positionOf(turn: Turn) {
    const siblings = siblingsOf(turns, turn)
    const isLast = turn === path.at(-1)
    return {
      index: siblings.indexOf(turn), count: siblings.length, isLast,
      isBusy: isBusy || chats.model === undefined, isLive: isBusy && isLast
    }
  }
}

function onEnd(turn: Turn, { error, takenBack, isElsewhere }: Outcome) {
  transcript.end(turn)
  status.end()
  show(false)
  if (takenBack) composer.giveBack(takenBack.content, takenBack.files ?? [])
  if (isElsewhere) say('Another tab is writing this answer.')
  const isKept = turn.content !== ''
  if (error !== undefined) transcript.fail(failureBox(isKept ? 'The answer broke off' : 'No answer', describeFailure(error, adviceFor(isKept))))
  else say('The answer has ended.')
}
