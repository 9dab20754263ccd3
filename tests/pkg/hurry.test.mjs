// Devices of Firefox tell of finished work when something is submitted: here with a device made by
// hand, in tests/web/firefox.spec.ts with a real one.
import assert from 'node:assert/strict'
import { afterEach, test } from 'node:test'

const { hurry } = await import(new URL('../../pkg/crate/hurry.js', import.meta.url))

const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:153.0) Gecko/20100101 Firefox/153.0'
const CHROMIUM = 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/156.0.0.0 Safari/537.36'

const before = Object.getOwnPropertyDescriptor(globalThis, 'navigator')
afterEach(() => {
  delete globalThis.navigator
  if (before) Object.defineProperty(globalThis, 'navigator', before)
})

const browse = userAgent => Object.defineProperty(globalThis, 'navigator', { value: { userAgent }, configurable: true })

/** A device that ends what waits with the third submission; `submitted` counts them. */
const madeDevice = () => {
  const device = { submitted: 0, ends: [] }
  const wait = () => new Promise((resolve, reject) => device.ends.push({ resolve, reject }))
  device.createBuffer = () => ({ mapAsync: wait })
  device.queue = {
    onSubmittedWorkDone: wait,
    submit: commands => {
      assert.deepEqual(commands, [])
      device.submitted += 1
      if (device.submitted % 3 === 0) for (const { resolve } of device.ends.splice(0)) resolve('done')
    }
  }
  return device
}

const pause = () => new Promise(resolve => setTimeout(resolve, 40))

test('while something waits, nothing is submitted often, and then no more', async () => {
  browse(FIREFOX)
  const device = madeDevice()
  hurry(device)
  hurry(device)
  const buffer = device.createBuffer({})
  assert.deepEqual(await Promise.all([buffer.mapAsync(1), device.queue.onSubmittedWorkDone()]), ['done', 'done'])
  assert.equal(device.submitted, 3)
  await pause()
  assert.equal(device.submitted, 3)
  assert.equal(await buffer.mapAsync(1), 'done')
  assert.equal(device.submitted, 6)
})

test('a wait that fails ends it too', async () => {
  browse(FIREFOX)
  const device = madeDevice()
  hurry(device)
  const mapped = device.createBuffer({}).mapAsync(1)
  device.ends.pop().reject(new Error('lost'))
  await assert.rejects(mapped, /lost/)
  await pause()
  assert.equal(device.submitted, 0)
})

test('devices of other browsers stay as they are', () => {
  browse(CHROMIUM)
  const device = madeDevice()
  const { createBuffer } = device
  hurry(device)
  assert.equal(device.createBuffer, createBuffer)
})
