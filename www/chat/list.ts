// The list of conversations: opens, searches, renames, deletes, exports and imports them.
import { byId, create } from '../shared/dom.ts'
import { failureBox, noticeBox, showNotice } from '../shared/notices.ts'
import type { Chats } from './chats.ts'
import { saveFile } from './download.ts'
import { fromFile, toJson, toMarkdown, type Exchanged } from './exchange.ts'
import { newId } from './ids.ts'
import type { Library } from './library.ts'
import { find, type Found } from './search.ts'
import { say } from './speaker.ts'

/** Milliseconds without a key before the list is searched. */
const PAUSE = 150

/** Connects the list. `onOpen` is called when the reader opens a conversation. */
export function createList(chats: Chats, library: Library, onOpen: () => void) {
  const list = byId('chat-list', HTMLElement)
  const none = byId('no-chats', HTMLElement)
  const count = byId('chat-count', HTMLElement)
  const search = byId('search', HTMLInputElement)
  const file = byId('import-file', HTMLInputElement)
  let timer: ReturnType<typeof setTimeout> | undefined
  /** How often the list was shown. */
  let version = 0

  async function show() {
    const mine = ++version
    const query = search.value.trim()
    const all = [...library.conversations.values()]
    const found = find(query, all, query ? await library.allTurns() : [])
    // Whoever renames a conversation keeps the field.
    if (mine !== version || list.querySelector('form')) return
    const focused = document.activeElement instanceof HTMLButtonElement && list.contains(document.activeElement) ? document.activeElement : undefined
    const id = focused?.closest('li')?.dataset.id
    list.replaceChildren(...found.map(row))
    if (focused && id) {
      const buttons = [...list.querySelectorAll<HTMLElement>(`[data-id="${id}"] button`)]
      ;(buttons.find(({ textContent }) => textContent === focused.textContent) ?? buttons[0])?.focus()
    }
    none.hidden = found.length > 0
    none.textContent = query ? 'No chat has these words.' : 'There are no chats yet.'
    count.textContent = query ? `${found.length} found` : ''
  }

  function row({ conversation, excerpt }: Found): HTMLElement {
    const { id, title } = conversation
    const item = create('li')
    item.dataset.id = id
    const isOpen = id === chats.conversation?.id
    const open = button(title, () => {
      onOpen()
      void chats.open(id)
    }, 'open')
    if (chats.isWriting(id)) open.append(create('span', 'writing', ' · writing'))
    if (excerpt) open.append(create('span', 'excerpt', excerpt))
    item.append(open)
    if (!isOpen) return item
    open.ariaCurrent = 'true'
    const buttons = create('div', 'row-buttons')
    buttons.append(
      button('Rename', () => rename(item, id, title)),
      exporting(`${title}.md`, async () => toMarkdown(conversation, await library.turns(id))),
      exporting(`${title}.json`, async () => toJson([await exchanged(id)])),
      button('Delete', () => void remove(id))
    )
    item.append(buttons)
    return item
  }

  /** A button that exports a conversation as a file with this name. */
  function exporting(name: string, text: () => Promise<string>): HTMLElement {
    const ending = name.slice(name.lastIndexOf('.'))
    const made = button(ending, async () => saveFile(name, await text()))
    made.ariaLabel = `Export as ${ending}`
    return made
  }

  async function exchanged(id: string): Promise<Exchanged> {
    const turns = [...(await library.turns(id)).values()].sort((a, b) => a.created - b.created)
    return { conversation: library.conversations.get(id)!, turns }
  }

  function rename(item: HTMLElement, id: string, title: string) {
    const form = create('form')
    const field = create('input')
    field.value = title
    field.ariaLabel = 'Title'
    field.required = true
    form.append(field)
    item.replaceChildren(form)
    field.select()
    let isDone = false
    async function end(isKept: boolean) {
      if (isDone) return
      isDone = true
      const name = field.value.trim()
      form.remove()
      if (isKept && name && name !== title) await chats.rename(id, name)
      await show()
      list.querySelector<HTMLElement>(`[data-id="${id}"] .open`)?.focus()
    }
    form.addEventListener('submit', event => {
      event.preventDefault()
      void end(true)
    })
    field.addEventListener('blur', () => void end(true))
    field.addEventListener('keydown', event => {
      if (event.key !== 'Escape') return
      event.stopPropagation()
      void end(false)
    })
  }

  async function remove(id: string) {
    const deleted = await chats.delete(id)
    if (!deleted) return
    const { conversation, turns } = deleted
    const box = noticeBox(`“${conversation.title}” was deleted. `)
    box.append(button('Undo', async () => {
      showNotice('deleted', null)
      await library.save(conversation, ...turns)
      await chats.open(id)
    }))
    showNotice('deleted', box)
  }

  search.addEventListener('input', () => {
    clearTimeout(timer)
    timer = setTimeout(() => void show(), PAUSE)
  })
  byId('export-all', HTMLButtonElement).addEventListener('click', async () => {
    const all = await Promise.all([...library.conversations.keys()].map(exchanged))
    saveFile('chats.json', toJson(all))
  })
  byId('import', HTMLButtonElement).addEventListener('click', () => file.click())
  file.addEventListener('change', async () => {
    const [given] = file.files ?? []
    if (!given) return
    try {
      const read = fromFile(given.name, await given.text(), Date.now(), newId)
      for (const { conversation, turns } of read) await library.save(conversation, ...turns)
      showNotice('import', null)
      say(`${read.length} imported.`)
      if (read.length === 1) await chats.open(read[0]!.conversation.id)
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error)
      showNotice('import', failureBox(`Could not import ${given.name}`, { code: 'import', message, advice: '' }))
    } finally {
      file.value = ''
    }
  })

  return { show: () => void show() }
}

function button(name: string, act: () => void, className = ''): HTMLButtonElement {
  const made = create('button', className, name)
  made.type = 'button'
  made.addEventListener('click', act)
  return made
}
