// The requests on the page, with the texts, calls and results that answer them. Text is inserted as
// text, never as HTML.
import type { Token } from 'tritloom'
import { byId, create } from '../shared/dom.ts'

/** A request on the page, and what comes of it. */
export interface Turn {
  /** A new answer of the model begins. */
  begin(): void
  append(token: Token): void
  /** A call has its result; `isWrong` if the tool has thrown it. */
  result(id: string, text: string, isWrong: boolean): void
  /** The request has ended. */
  end(...more: HTMLElement[]): void
}

/** Connects the log. */
export function createLog() {
  const log = byId('log', HTMLElement)

  function addTurn(request: string): Turn {
    const turn = create('article', 'turn')
    const user = create('p', 'message user')
    user.append(create('span', 'visually-hidden', 'You: '), request)
    turn.append(user)
    log.prepend(turn)
    // Then screen readers read the answers once, when they are whole, and not every text as it comes.
    log.ariaBusy = 'true'

    let text = new Text()
    /** The calls of the answer that comes, in their order. */
    let calls: ReturnType<typeof addCall>[] = []
    const byCall = new Map<string, ReturnType<typeof addCall>>()
    /** Results of calls that are not on the page yet. */
    const early = new Map<string, [text: string, isWrong: boolean]>()

    function addCall(name: string) {
      const box = create('div', 'call')
      const line = create('p')
      const args = create('code', 'arguments')
      line.append(create('span', 'visually-hidden', 'Calls '), create('code', 'name', name), ' ', args)
      const result = create('p', 'result')
      box.append(line, result)
      turn.append(box)
      return { args, result }
    }

    function showResult(id: string, said: string, isWrong: boolean) {
      const { result } = byCall.get(id)!
      result.textContent = said
      result.classList.toggle('wrong', isWrong)
    }

    return {
      begin() {
        text = new Text()
        calls = []
      },
      append({ text: slice, channel, call }) {
        if (channel === 'answer' && slice) {
          if (!text.isConnected) turn.append(answerBox(text))
          text.appendData(slice)
        }
        if (!call) return
        if (call.id && call.name) {
          byCall.set(call.id, (calls[call.index] = addCall(call.name)))
          const known = early.get(call.id)
          if (known) showResult(call.id, ...known)
        }
        calls[call.index]?.args.append(slice)
      },
      result(id, said, isWrong) {
        if (byCall.has(id)) showResult(id, said, isWrong)
        else early.set(id, [said, isWrong])
      },
      end(...more) {
        turn.append(...more)
        log.ariaBusy = 'false'
      }
    }
  }

  return { addTurn }
}

function answerBox(text: Text): HTMLElement {
  const box = create('p', 'message assistant')
  box.append(create('span', 'visually-hidden', 'Model: '), text)
  return box
}
