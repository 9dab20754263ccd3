// The dialog with the known models: their facts, whether they fit, and a button that says how many
// bytes it downloads.
import { byId, create } from '../dom.ts'
import { formatBytes, formatCount } from 'tritloom/words'
import { judge, readDevice, type Device, type Verdict } from './fit.ts'
import { FAMILIES, fileOf, pageOf, type Family, type KnownModel } from './models.ts'

/** Called with the address and the name of the model that the reader wants. */
type Pick = (address: string, name: string) => void

const VERDICTS: Record<Verdict['fits'], string> = {
  yes: 'Fits',
  no: 'Does not fit',
  unknown: 'Unknown'
}

const MEMORY =
  'How much memory the GPU has, no page can know. A load that needs more ends with an error, and ' +
  'gives all of it back.'

/** Connects the dialog. */
export function createKnown(onPick: Pick) {
  const dialog = byId('known', HTMLDialogElement)
  const room = byId('room', HTMLElement)
  const list = byId('known-models', HTMLElement)

  const pick: Pick = (address, name) => {
    dialog.close() // Before the load, so that the focus is back in the page.
    onPick(address, name)
  }

  dialog.addEventListener('keydown', event => {
    // Esc closes the dialog, and does not stop an answer.
    if (event.key === 'Escape') event.stopPropagation()
  })
  byId('close-known', HTMLButtonElement).addEventListener('click', () => dialog.close())
  byId('open-known', HTMLButtonElement).addEventListener('click', async () => {
    room.textContent = 'Looking at what fits …'
    list.replaceChildren()
    dialog.showModal()
    const device = await readDevice()
    room.textContent = describeRoom(device)
    list.replaceChildren(...FAMILIES.map(family => section(family, device, pick)))
  })
}

function describeRoom({ free }: Device): string {
  return free === undefined ? MEMORY : `This browser has room for ${formatBytes(free)}. ${MEMORY}`
}

function section(family: Family, device: Device, pick: Pick): HTMLElement {
  const { name, about, note, models } = family
  const box = create('section')
  const rows = create('ul')
  rows.append(...models.map(model => row(family, model, device, pick)))
  box.append(create('h3', '', name), create('p', '', `${about} ${note}`), rows)
  return box
}

function row({ weights, licence }: Family, model: KnownModel, device: Device, pick: Pick) {
  const { name, parameters, bytes, context } = model
  const { fits, why } = judge(model, device)
  const tokens = context ? `context ${formatCount(context)}` : 'context not reported'
  const memory = `at least ${formatBytes(bytes)} of memory`
  const facts = [formatBytes(bytes), `${parameters} weights`, weights, tokens, licence, memory].join(' · ')
  const verdict = create('p', 'verdict')
  verdict.append(create('strong', fits, VERDICTS[fits]), ` ${why}`)
  const item = create('li')
  item.append(create('h4', '', name), create('p', 'facts', facts), verdict)
  item.append(getting(model, device, pick))
  return item
}

/**
 * The controls that load a model: a button. If only the repository is known, a field for the
 * address too.
 */
function getting(model: KnownModel, device: Device, pick: Pick): HTMLElement {
  const { name, bytes } = model
  const [file, filesPage] = [fileOf(model), pageOf(model)]
  const form = create('form', 'getting')
  const isHere = file !== undefined && device.stored.has(file)
  // A file that the reader names may have another size, so this one is approximate.
  const size = file ? formatBytes(bytes) : `some ${formatBytes(bytes)}`
  const button = create('button', '', isHere ? 'Load' : `Download ${size}`)
  button.append(create('span', 'visually-hidden', ` ${name}`))
  button.disabled = !device.gpu.available
  const field = create('input')
  if (file) {
    form.append(button)
  } else {
    field.type = 'url'
    field.required = true
    field.placeholder = 'Address of a file there'
    field.ariaLabel = `Address of a GGUF file of ${name}`
    form.append(field, button)
  }
  if (filesPage) form.append(linkTo(filesPage, name))
  form.addEventListener('submit', event => {
    event.preventDefault()
    pick(file ?? field.value, name)
  })
  return form
}

function linkTo(filesPage: string, name: string): HTMLElement {
  const link = create('a', '', 'Its files')
  link.append(create('span', 'visually-hidden', `: ${name}, in a new tab`))
  link.href = filesPage
  link.target = '_blank'
  link.rel = 'noopener'
  return link
}
