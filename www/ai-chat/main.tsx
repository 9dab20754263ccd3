// A chat made with React and the AI SDK. Its model runs in the page: there is no server.
import { useChat } from '@ai-sdk/react'
import { DirectChatTransport, ToolLoopAgent, type UIMessage } from 'ai'
import { useEffect, useState, type FormEvent } from 'react'
import { createRoot } from 'react-dom/client'
import { tritloom } from 'tritloom/ai-sdk'
import { BUNDLED_MODEL } from '../shared/bundled.ts'
import { keepPages } from '../shared/offline.ts'

const model = tritloom(BUNDLED_MODEL)
const agent = new ToolLoopAgent({ model, temperature: 0 })
// The transport hides what went wrong unless it is told to say it.
const transport = new DirectChatTransport({ agent, onError: messageOf })

function Chat() {
  const { messages, setMessages, sendMessage, regenerate, stop, status, error, clearError } = useChat({ transport })
  const [text, setText] = useState('')
  const isAnswering = status === 'submitted' || status === 'streaming'

  function send(event: FormEvent) {
    event.preventDefault()
    if (isAnswering || text.trim() === '') return
    setText('')
    void sendMessage({ text })
  }

  /** A conversation that the model's context does not hold any more gets no answer. */
  function startAgain() {
    clearError()
    setMessages([])
  }

  return (
    <>
      <div role="log" aria-label="Conversation" aria-busy={isAnswering}>
        {messages.map(message => <Message key={message.id} message={message} />)}
      </div>
      {error && <Failure title="No answer" message={error.message} again={() => void regenerate()} />}
      <form onSubmit={send}>
        <label htmlFor="text" className="visually-hidden">Your message</label>
        <input id="text" autoComplete="off" placeholder="Who are you?" value={text} onChange={event => setText(event.target.value)} />
        {isAnswering
          ? <button type="button" onClick={() => void stop()}>Stop</button>
          : <button className="primary">Send</button>}
        {!isAnswering && messages.length > 0 && <button type="button" onClick={startAgain}>Start again</button>}
      </form>
    </>
  )
}

function Message({ message: { role, parts } }: { message: UIMessage }) {
  return (
    <div className={`message ${role}`}>
      {parts.map((part, n) => {
        if (part.type === 'text') return <p key={n}>{part.text}</p>
        if (part.type !== 'reasoning') return null
        return <details key={n} className="reasoning"><summary>Reasoning</summary>{part.text}</details>
      })}
    </div>
  )
}

function Failure({ title, message, again }: { title: string, message: string, again: () => void }) {
  return (
    <div className="failure" role="alert">
      <strong>{title}</strong>
      <p>{message}</p>
      <button type="button" onClick={again}>Try again</button>
    </div>
  )
}

/** Loads the model, and shows how far it is. A message would load it too, without saying so. */
function App() {
  const [progress, setProgress] = useState(0)
  const [failure, setFailure] = useState('')

  function load() {
    setFailure('')
    model.createSessionWithProgress(setProgress).catch(error => setFailure(messageOf(error)))
  }
  useEffect(load, [])

  if (failure) return <Failure title="The model could not be loaded" message={failure} again={load} />
  if (progress === 1) return <Chat />
  return <p><label>Loading the model <progress value={progress} /></label></p>
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

createRoot(document.getElementById('chat')!).render(<App />)
// A page that cannot be kept works as well, with a network.
keepPages('../').catch(() => {})
