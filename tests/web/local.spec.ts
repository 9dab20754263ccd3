// Models that the page has: files, blobs, arrays, streams. They are read where they are, and none
// of them is stored.
import { copyFileSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  expect, expectRandomModel, GOLDEN_MODEL, goldens, MIB, RANDOM_MODEL, SIZE, test
} from './harness'
import { spreadModel } from './models.mjs'
import type { Page } from '@playwright/test'

test.use({ backend: 'cpu' })

const bytesOf = (url: string) => `new Uint8Array(await (await fetch('${url}')).arrayBuffer())`

/** Chooses a file on the disk, as a visitor does, as `window.file`. */
const choose = async (page: Page, path: string) => {
  await page.evaluate(() => {
    document.body.innerHTML = '<input type="file">'
    const input = document.querySelector('input')!
    input.onchange = () => Object.assign(window, { file: input.files![0] })
  })
  await page.setInputFiles('input', path)
  // Browsers look at a file when they are first asked about it. Earlier changes of it do not count
  // as changes.
  await page.evaluate(() => (window as unknown as { file: File }).file.size)
}

/** How loading `source` fails: its code and message. */
const failure = (page: Page, source: string, worker: boolean) => page.evaluate(async ([source, worker]) => {
  return window.load(await (0, eval)(`(async () => ${source})()`), worker ? {} : { worker })
    .then(() => 'none', error => `${error.code ?? error.name}: ${error.message}`)
}, [source, worker] as const)

test('an array that is detached while it is read is an error, now and when the GPU is lost', async ({ harness }) => {
  const found = await harness.evaluate(async url => {
    const devices: GPUDevice[] = []
    const requestDevice = GPUAdapter.prototype.requestDevice
    GPUAdapter.prototype.requestDevice = async function (descriptor) {
      const device = await requestDevice.call(this, descriptor)
      devices.push(device)
      return device
    }
    const { BitNet } = window.tritloom
    const bytes = await (await fetch(url)).arrayBuffer()
    const codes = []
    const other = bytes.slice()
    const detach = () => { if (other.byteLength) structuredClone(other, { transfer: [other] }) }
    codes.push(await BitNet.load(other, { backend: 'webgpu', worker: false, onProgress: detach }).then(() => 'none', error => error.code))
    const model = await BitNet.load(bytes, { backend: 'webgpu', worker: false })
    structuredClone(bytes, { transfer: [bytes] })
    const lost = model.lost
    devices.at(-1)!.destroy()
    await lost
    for (let n = 0; n < 2; n++) codes.push(await model.logits(Uint32Array.of(1)).then(() => 'none', error => error.code))
    await model.dispose()
    return codes
  }, '/spread.gguf')
  expect(found).toEqual(['io', 'io', 'io'])
})

test('where streams cannot be transferred, one is gathered first, and its faults are errors as elsewhere', async ({ shared }) => {
  const found = await shared.evaluate(async url => {
    const clone = globalThis.structuredClone
    globalThis.structuredClone = (value, options) => {
      if (value instanceof ReadableStream) throw new DOMException('not a stream', 'DataCloneError')
      return clone(value, options)
    }
    const outcome = (stream: ReadableStream<Uint8Array<ArrayBuffer>>) =>
      window.load(stream).then(() => 'none', error => `${error.code}: ${error.message}`)
    const fails = new ReadableStream({ start(controller) { controller.error(new Error('unplugged')) } })
    const isRead = new ReadableStream()
    isRead.getReader()
    return [await outcome((await fetch(url)).body!), await outcome(fails), await outcome(isRead)]
  }, RANDOM_MODEL)
  expect(found).toEqual(['none', expect.stringMatching(/^io: .*stream/), expect.stringMatching(/^io: .*stream/)])
})

for (const worker of [true, false]) {
  const where = worker ? 'in a worker' : 'in this thread'

  test(`the text is the golden one from every source, and nothing is stored, ${where}`, async ({ harness, shared }) => {
    // A fresh page has no database; the shared one has its kernels.
    const golden = goldens.find(({ name }) => name === 'who')!
    await choose(shared, `.${GOLDEN_MODEL}`)
    const sources = {
      'a file on the disk': 'window.file',
      'a Blob': `(await fetch('${GOLDEN_MODEL}')).blob()`,
      'an ArrayBuffer': `(await fetch('${GOLDEN_MODEL}')).arrayBuffer()`,
      'a Uint8Array': bytesOf(GOLDEN_MODEL),
      'a ReadableStream': `(await fetch('${GOLDEN_MODEL}')).body`
    }
    for (const [name, source] of Object.entries(sources)) {
      const found = await shared.evaluate(async ([source, worker, ids, maxTokens]) => {
        const model = await window.load(await (0, eval)(`(async () => ${source})()`), worker ? {} : { worker })
        const text = await model.generate(Uint32Array.from(ids), { maxTokens }).text()
        return { text, stored: await window.tritloom.BitNet.cache.list() }
      }, [source, worker, golden.ids, golden.greedy.length] as const)
      expect(found, name).toEqual({ text: golden.greedy_text, stored: [] })
    }
    const databases = await harness.evaluate(async ([source, worker]) => {
      await window.load(await (0, eval)(`(async () => ${source})()`), { worker })
      return indexedDB.databases()
    }, [sources['a Blob'], worker] as const)
    expect(databases).toEqual([])
  })

  test(`bytes that cannot be read are an error, ${where}`, async ({ shared }) => {
    const stream = (start: string) => `new ReadableStream({ async start(controller) { ${start} } })`
    const failures: Record<string, [code: string, message: RegExp, source: string]> = {
      'a stream that is being read': ['bad-option|io', /lock|stream/i, `(() => { const stream = ${stream('')}; stream.getReader(); return stream })()`],
      'a stream that was read': ['bad-option|io', /lock|disturbed|stream/i, `(async () => { const response = await fetch('${RANDOM_MODEL}'); const stream = response.body; const reader = stream.getReader(); await reader.read(); return stream })()`],
      'a stream that fails': ['io', /./, stream(`controller.enqueue((${bytesOf(RANDOM_MODEL)}).subarray(0, 5000)); controller.error(new Error('unplugged'))`)],
      'a stream of half a file': ['bad-gguf', /./, stream(`controller.enqueue((${bytesOf(RANDOM_MODEL)}).subarray(0, 200000)); controller.close()`)],
      'a stream of nothing': ['bad-gguf', /./, stream('controller.close()')],
      'an array that was given away': ['io', /array.*detached/, `(async () => { const bytes = ${bytesOf(RANDOM_MODEL)}; structuredClone(bytes.buffer, { transfer: [bytes.buffer] }); return bytes })()`],
      'a buffer that was given away': ['io', /array.*detached/, `(async () => { const { buffer } = ${bytesOf(RANDOM_MODEL)}; structuredClone(buffer, { transfer: [buffer] }); return buffer })()`],
      'an empty array': ['bad-gguf', /./, `new Uint8Array()`]
    }
    for (const [name, [codes, message, source]] of Object.entries(failures)) {
      const found = await failure(shared, source, worker)
      expect(found, name).toMatch(new RegExp(`^(${codes}): `))
      expect(found, name).toMatch(message)
    }
  })

  test(`a file that changes on the disk is an error, ${where}`, async ({ shared }) => {
    const folder = mkdtempSync(join(tmpdir(), 'tritloom-'))
    const path = join(folder, 'model.gguf')
    try {
      for (const [change, code] of [
        [() => truncateSync(path, 200_000), /^io: .*file/],
        [() => writeFileSync(path, 'another file altogether'), /^io: .*file/],
        // Chromium then says that it has no bytes, rather than that it cannot be read.
        [() => rmSync(path), /^(io: .*file|bad-gguf: .*ends at 0)/]
      ] as const) {
        copyFileSync(`.${RANDOM_MODEL}`, path)
        await choose(shared, path)
        change()
        expect(await failure(shared, 'window.file', worker), String(change)).toMatch(code)
      }
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  test(`a file that changes while it is read is an error, ${where}`, async ({ harness }) => {
    const folder = mkdtempSync(join(tmpdir(), 'tritloom-'))
    const path = join(folder, 'model.gguf')
    try {
      writeFileSync(path, spreadModel())
      await choose(harness, path)
      await harness.exposeFunction('change', () => truncateSync(path, SIZE - 2 * MIB))
      const found = await harness.evaluate(async worker => {
        const { file, change } = window as unknown as { file: File, change(): Promise<void> }
        const script = `import '${location.origin}/tests/web/held-reads.mjs'; import '${location.origin}/pkg/protocol/worker.js'`
        const blob = new Blob([script], { type: 'text/javascript' })
        const where = worker ? new Worker(URL.createObjectURL(blob), { type: 'module' }) : false
        if (!worker) await import(`${location.origin}/tests/web/held-reads.mjs`)
        const channel = new BroadcastChannel('reads')
        const told = (what: string) => new Promise<void>(resolve => {
          channel.addEventListener('message', ({ data }) => { if (data === what) resolve() })
        })
        const [ready, held] = [told('ready'), told('held')]
        // Until the thread listens.
        const asking = setInterval(() => channel.postMessage('hold'), 20)
        await ready
        clearInterval(asking)
        const outcome = window.load(file, { worker: where }).then(() => 'none', error => `${error.code}: ${error.message}`)
        await held
        await change()
        channel.postMessage('go on')
        return outcome
      }, worker)
      expect(found).toMatch(/^io: .*the file/)
      // As it is now, it is another file: one that is cut off.
      await choose(harness, path)
      expect(await failure(harness, 'window.file', worker)).toMatch(/^bad-gguf: .*cut off/)
      writeFileSync(path, spreadModel())
      await choose(harness, path)
      expect(await failure(harness, 'window.file', worker)).toBe('none')
      await expectRandomModel(harness)
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
}
