// A page that knows nothing but Chrome's documentation of the Prompt API: a chat whose answers come as they are
// generated, with progress, stopping, starting again from the first session, and the use of the context.
const [state, download, form, question, stop, again, end, answer, usage] =
  ['state', 'download', 'form', 'question', 'stop', 'again', 'end', 'answer', 'usage'].map(id => document.getElementById(id))

const languages = ['en']
const options = { expectedInputs: [{ type: 'text', languages }], expectedOutputs: [{ type: 'text', languages }] }

let first
let session
let controller
const events = []

const tell = text => { state.textContent = text }

async function start() {
  first = await LanguageModel.create({
    ...options,
    initialPrompts: [
      { role: 'system', content: 'You are a helpful and friendly assistant.' },
      { role: 'user', content: 'What is the capital of Italy?' },
      { role: 'assistant', content: 'The capital of Italy is Rome.' }
    ],
    monitor(m) {
      m.addEventListener('downloadprogress', e => {
        events.push(e.loaded)
        download.value = e.loaded
      })
    }
  })
  session = await first.clone()
}

form.addEventListener('submit', async event => {
  event.preventDefault()
  try {
    if (!session) await start()
    answer.textContent = ''
    controller = new AbortController()
    tell('answering')
    const stream = session.promptStreaming(question.value, { signal: controller.signal })
    for await (const chunk of stream) answer.append(chunk)
    usage.textContent = `${session.contextUsage} of ${session.contextWindow}`
    tell(`answered after ${events[0]} to ${events.at(-1)}`)
  } catch (error) {
    tell(error.name)
  }
})

stop.addEventListener('click', () => controller.abort())
again.addEventListener('click', async () => {
  session.destroy()
  session = await first.clone()
  usage.textContent = `${session.contextUsage} of ${session.contextWindow}`
})
end.addEventListener('click', () => {
  first.destroy()
  session.destroy()
})

if ('LanguageModel' in self) tell(await LanguageModel.availability(options))
else tell('not supported')
