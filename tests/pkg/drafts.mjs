// The parts that the tests of `tritloom/built-in-ai` share. docs/BUILT-IN-AI.md says which file of the web platform tests each of
// them stands for.
import assert from 'node:assert/strict'

export const entry = await import(new URL('../../pkg/built-in-ai.js', import.meta.url))
export const PROMPT = 'Name three birds that sing at night.'
export const OTHER = 'How deep is the sea?'

/** Configures a model, and gives it. */
export const given = (model, settings = {}) => {
  entry.configure({ model, ...settings })
  return model
}

/** Checks for a `DOMException` of this name. */
export const fails = (promise, name, said = /./) => assert.rejects(promise, error => {
  assert.ok(error instanceof DOMException, String(error))
  assert.equal(error.name, name, error.message)
  assert.match(error.message, said)
  return true
})

/** Checks for a `TypeError`, or another of the language's errors. */
export const wrong = (promise, kind = TypeError) => assert.rejects(promise, error => {
  assert.equal(error.constructor, kind, String(error))
  return true
})

export const textsOf = async stream => {
  const texts = []
  for await (const text of stream) texts.push(text)
  return texts
}

/** A call that is aborted rejects with the signal's reason, and so does one whose signal is aborted already. */
export const expectAborts = async call => {
  for (const reason of [undefined, new Error('enough')]) {
    const stop = new AbortController()
    const running = call(stop.signal)
    stop.abort(reason)
    await assert.rejects(running, error => error === stop.signal.reason)
    await assert.rejects(call(stop.signal), error => error === stop.signal.reason)
  }
}

/** The same for a call that gives a stream: a signal that is aborted already throws. */
export const expectStreamAborts = async call => {
  for (const reason of [undefined, new DOMException('enough', 'VersionError')]) {
    const stop = new AbortController()
    const running = call(stop.signal).pipeTo(new WritableStream())
    stop.abort(reason)
    await assert.rejects(running, error => error === stop.signal.reason)
    assert.throws(() => call(stop.signal), error => error === stop.signal.reason)
  }
}

/** Resolves when each creation that has begun waits for its model, however busy the machine is. */
export const settled = async () => {
  for (let n = 0; n < 8; n++) await new Promise(resolve => setTimeout(resolve))
}

/** The events that a creation fires are those of the draft. Gives the session. */
export const expectProgress = async create => {
  const events = []
  let isCreated = false
  const session = await create({
    monitor: target => target.addEventListener('downloadprogress', event => {
      assert.equal(isCreated, false)
      events.push(event)
    })
  })
  isCreated = true
  await settled()
  const shares = events.map(({ loaded }) => loaded)
  assert.deepEqual([shares[0], shares.at(-1)], [0, 1])
  for (const [n, { loaded, total, lengthComputable }] of events.entries()) {
    assert.deepEqual([total, lengthComputable, loaded * 0x10000 % 1], [1, true, 0])
    if (n > 0) assert.ok(loaded > shares[n - 1], shares.join(' '))
  }
  return session
}

/** A page may abort in the first event and in the last one. No further events come. */
export const expectNoProgressAfterAbort = async create => {
  for (const at of [0, 1]) {
    const stop = new AbortController()
    const seen = []
    const reason = new Error('enough')
    await assert.rejects(create({
      signal: stop.signal,
      monitor: target => {
        target.ondownloadprogress = async ({ loaded }) => {
          seen.push(loaded)
          // A page that awaits a promise of its own takes a while.
          for (let n = 0; n < 9; n++) await undefined
          if (loaded === at) stop.abort(reason)
        }
      }
    }), error => error === reason)
    assert.equal(seen.at(-1), at)
  }
}
