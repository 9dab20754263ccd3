// The page with tools: connects its parts.
import type { RunnableTool, RunToolsOptions, Stats, Token } from 'tritloom'
import { describeFailure, formatCount, formatRate, type Advice } from 'tritloom/words'
import { BUNDLED_MODEL } from '../shared/bundled.ts'
import { byId, create } from '../shared/dom.ts'
import { sendOnEnter } from '../shared/keys.ts'
import { HeldModel } from '../shared/model/held.ts'
import { createKnown } from '../shared/model/known.ts'
import { createLoader } from '../shared/model/loader.ts'
import { failureBox, noticeBox, showLoss, showNotice } from '../shared/notices.ts'
import { keepPages } from '../shared/offline.ts'
import { createLog, type Turn } from './log.ts'
import { createThings } from './things.ts'
import { pageTools, TOOL_NAMES, type ToolName } from './tools.ts'

const ADVICE: Advice = {
  'context-full': 'Ask for less, or take a model with a longer context.',
  'device-lost': 'Ask again: that brings the model back.',
  'incomplete': 'Ask for less at once.'
}

/** The choices that name no tool, in their order on the page. */
const ANY = ['auto', 'required'] as const

/** The most answers to a request. */
const MAX_STEPS = 6

/** The context of the bundled model holds few. */
const TOOLS_OF_TOY: readonly ToolName[] = ['add_item', 'set_theme']

/** The most tokens of an answer of the bundled model, which would tell a story otherwise. */
const MAX_TOKENS_OF_TOY = 90

const form = byId('request', HTMLFormElement)
const field = byId('prompt', HTMLTextAreaElement)
const choice = byId('choice', HTMLSelectElement)
const askButton = byId('ask', HTMLButtonElement)
const stopButton = byId('stop', HTMLButtonElement)
const toy = byId('toy', HTMLElement)

const held = new HeldModel(() => showLoss('request'))
const history = createThings()
const log = createLog()
let [isReady, isAsking, isToy] = [false, false, false]
/** Whether the reader has chosen which tools the model knows, and which ones it is to call. */
const hasChosen = { tools: false, choice: false }

const loader = createLoader({
  load: (source, options) => held.load(source, options),
  info: () => held.info,
  onAddress: () => (toy.hidden = true),
  onLoad() {
    isReady = false
    update()
  },
  onReady({ source }) {
    isToy = source === BUNDLED_MODEL
    isReady = true
    toy.hidden = !isToy
    if (!hasChosen.tools) showTools(isToy ? TOOLS_OF_TOY : TOOL_NAMES)
    if (!hasChosen.choice) choice.value = isToy ? 'required' : 'auto'
    update()
  }
})
createKnown((address, name) => void loader.load({ source: address, name }))

/** The boxes that say whether the model knows a tool. */
const boxes = TOOL_NAMES.map(name => ({ name, box: byId(`knows-${name}`, HTMLInputElement) }))
byId('known-tools', HTMLElement).addEventListener('change', () => {
  hasChosen.tools = true
  showTools(boxes.filter(({ box }) => box.checked).map(({ name }) => name))
})
showTools(TOOL_NAMES)
choice.addEventListener('change', () => (hasChosen.choice = true))
byId('suggestions', HTMLElement).addEventListener('click', ({ target }) => {
  if (!(target instanceof HTMLButtonElement)) return
  field.value = target.textContent
  field.focus()
  update()
})
form.addEventListener('submit', event => {
  event.preventDefault()
  const text = field.value.trim()
  if (!askButton.disabled && !isAsking) void ask(text)
})
field.addEventListener('input', update)
sendOnEnter(field, form)
document.addEventListener('keydown', event => {
  if (event.key === 'Escape') held.stop()
})
stopButton.addEventListener('click', () => held.stop())

await loader.start()
// A page that cannot be kept works as well, with a network.
keepPages('../').catch(() => {})

/** Shows which tools the model knows, and offers these to call. */
function showTools(names: readonly ToolName[]) {
  for (const { name, box } of boxes) box.checked = names.includes(name)
  const { value } = choice
  choice.replaceChildren(
    ...[...choice.options].slice(0, ANY.length), ...names.map(name => new Option(name, name))
  )
  choice.value = names.some(name => name === value) ? value : ANY.find(any => any === value) ?? ANY[0]
  update()
}

function update() {
  askButton.disabled = !isReady || field.value.trim() === '' || !boxes.some(({ box }) => box.checked)
  askButton.hidden = isAsking
  stopButton.hidden = !isAsking
}

function setAsking(now: boolean) {
  isAsking = now
  update()
  // The button that had the focus is hidden now.
  if (document.activeElement === document.body) (now ? stopButton : field).focus()
}

async function ask(text: string) {
  const turn = log.addTurn(text)
  const signal = held.begin()
  field.value = ''
  setAsking(true)
  if (held.isLost) showNotice('loss', noticeBox('Bringing the model back …'))
  try {
    const { stats } = await held.model.runTools({
      messages: text,
      tools: shown(pageTools(history), turn),
      toolChoice: toolChoice(),
      // Where it has to call, the toy would call without an end.
      parallelToolCalls: !isToy,
      maxSteps: MAX_STEPS,
      ...(isToy && { maxTokens: MAX_TOKENS_OF_TOY }),
      ...(held.info.thinking && { thinking: false }),
      onAnswer(answer) {
        turn.begin()
        // The run reports errors.
        follow(held.untilStopped(answer.tokens(), signal), turn).catch(() => {})
      },
      signal
    })
    turn.end(create('p', 'figures', describe(stats)))
  } catch (error) {
    if (signal.aborted) return turn.end(create('p', 'figures', 'stopped'))
    turn.end(failureBox('The request failed', describeFailure(error, ADVICE)))
    if (field.value === '') field.value = text
  } finally {
    setAsking(false)
  }
}

async function follow(tokens: AsyncIterable<Token>, turn: Turn) {
  for await (const token of tokens) {
    showNotice('loss', null)
    turn.append(token)
  }
}

function toolChoice(): RunToolsOptions['toolChoice'] {
  const { value } = choice
  return ANY.find(any => any === value) ?? { name: value }
}

/** The tools that the model knows, with their results shown on the page. */
function shown(tools: Record<ToolName, RunnableTool>, turn: Turn): Record<string, RunnableTool> {
  const wrap = ({ execute, ...tool }: RunnableTool): RunnableTool => ({
    ...tool,
    async execute(args, call) {
      try {
        const said = String(await execute(args, call))
        turn.result(call.id, said, false)
        return said
      } catch (error) {
        turn.result(call.id, error instanceof Error ? error.message : String(error), true)
        throw error
      }
    }
  })
  const known = boxes.filter(({ box }) => box.checked)
  return Object.fromEntries(known.map(({ name }) => [name, wrap(tools[name])]))
}

/** A line such as `2 answers · 96 tokens · 41 tokens/s`. */
function describe(stats: Stats[]): string {
  const tokens = stats.reduce((sum, { completionTokens }) => sum + completionTokens, 0)
  const rate = Math.max(...stats.map(({ decodeTokensPerSecond }) => decodeTokensPerSecond))
  return [
    `${stats.length} ${stats.length === 1 ? 'answer' : 'answers'}`, `${formatCount(tokens)} tokens`, rate > 0 ? formatRate(rate) : ''
  ].filter(figure => figure).join(' · ')
}
