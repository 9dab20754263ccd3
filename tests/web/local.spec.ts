// Models that the page has: files, blobs, arrays, streams. They are read where they are, and nothing of
// them is stored.
import { copyFileSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, goldens, MODEL, RANDOM_MODEL, test } from './harness'
import type { Page } from '@playwright/test'

const bytesOf = (url: string) => `new Uint8Array(await (await fetch('${url}')).arrayBuffer())`

/** Chooses a file on the disk, as a visitor does; it is `window.file` then. */
const choose = async (page: Page, path: string) => {
  await page.evaluate(() => {
    document.body.innerHTML = '<input type="file">'
    const input = document.querySelector('input')!
    input.onchange = () => Object.assign(window, { file: input.files![0] })
  })
  await page.setInputFiles('input', path)
  // Browsers look at the file when they are first asked about it: what changes before is no change.
  await page.evaluate(() => (window as unknown as { file: File }).file.size)
}

/** How loading `source` fails: its code and message. */
const failure = (page: Page, source: string, worker: boolean) => page.evaluate(async ([source, worker]) => {
  const { BitNet } = window.ternlight
  return BitNet.load(await (0, eval)(`(async () => ${source})()`), { worker })
    .then(() => 'none', error => `${error.code ?? error.name}: ${error.message}`)
}, [source, worker] as const)

test('an array that is given away while it is read is an error, now and when the GPU is lost', async ({ harness }) => {
  const found = await harness.evaluate(async url => {
    const devices: GPUDevice[] = []
    const requestDevice = GPUAdapter.prototype.requestDevice
    GPUAdapter.prototype.requestDevice = async function (descriptor) {
      const device = await requestDevice.call(this, descriptor)
      devices.push(device)
      return device
    }
    const { BitNet } = window.ternlight
    const bytes = await (await fetch(url)).arrayBuffer()
    const codes = []
    const other = bytes.slice()
    const away = () => { if (other.byteLength) structuredClone(other, { transfer: [other] }) }
    codes.push(await BitNet.load(other, { worker: false, onProgress: away }).then(() => 'none', error => error.code))
    const model = await BitNet.load(bytes, { worker: false })
    structuredClone(bytes, { transfer: [bytes] })
    const lost = model.lost
    devices.at(-1)!.destroy()
    await lost
    for (let n = 0; n < 2; n++) codes.push(await model.logits(Uint32Array.of(1)).then(() => 'none', error => error.code))
    await model.dispose()
    return codes
  }, MODEL)
  expect(found).toEqual(['io', 'io', 'io'])
})

test('where streams cannot be handed over, one is gathered first, and its faults are errors as elsewhere', async ({ harness }) => {
  const found = await harness.evaluate(async url => {
    const { BitNet } = window.ternlight
    const clone = globalThis.structuredClone
    globalThis.structuredClone = (value, options) => {
      if (value instanceof ReadableStream) throw new DOMException('not a stream', 'DataCloneError')
      return clone(value, options)
    }
    const outcome = async (stream: ReadableStream<Uint8Array>) => BitNet.load(stream).then(async model => {
      await model.dispose()
      return 'none'
    }, error => `${error.code}: ${error.message}`)
    const fails = new ReadableStream({ start(controller) { controller.error(new Error('unplugged')) } })
    const isRead = new ReadableStream()
    isRead.getReader()
    return [await outcome((await fetch(url)).body!), await outcome(fails), await outcome(isRead)]
  }, RANDOM_MODEL)
  expect(found).toEqual(['none', expect.stringMatching(/^io: .*stream/), expect.stringMatching(/^io: .*stream/)])
})

for (const worker of [true, false]) {
  const where = worker ? 'in a worker' : 'in this thread'

  test(`the text is the golden one from every source, and nothing is stored, ${where}`, async ({ harness }) => {
    const golden = goldens.prompts.find(({ name }) => name === 'who')!
    await choose(harness, `.${MODEL}`)
    const sources = {
      'a file on the disk': 'window.file',
      'a Blob': `(await fetch('${MODEL}')).blob()`,
      'an ArrayBuffer': `(await fetch('${MODEL}')).arrayBuffer()`,
      'a Uint8Array': bytesOf(MODEL),
      'a ReadableStream': `(await fetch('${MODEL}')).body`
    }
    for (const [name, source] of Object.entries(sources)) {
      const found = await harness.evaluate(async ([source, worker, ids, maxTokens]) => {
        const model = await window.ternlight.BitNet.load(await (0, eval)(`(async () => ${source})()`), { worker })
        const text = await model.generate(Uint32Array.from(ids), { maxTokens }).text()
        await model.dispose()
        return { text, databases: await indexedDB.databases() }
      }, [source, worker, golden.ids, golden.greedy.length] as const)
      expect(found, name).toEqual({ text: golden.greedy_text, databases: [] })
    }
  })

  test(`bytes that cannot be read are an error, ${where}`, async ({ harness }) => {
    const stream = (start: string) => `new ReadableStream({ async start(controller) { ${start} } })`
    const failures: Record<string, [code: string, message: RegExp, source: string]> = {
      'a stream that somebody reads': ['bad-option|io', /lock|stream/i, `(() => { const stream = ${stream('')}; stream.getReader(); return stream })()`],
      'a stream that was read': ['bad-option|io', /lock|disturbed|stream/i, `(async () => { const response = await fetch('${RANDOM_MODEL}'); const stream = response.body; const reader = stream.getReader(); await reader.read(); return stream })()`],
      'a stream that fails': ['io', /./, stream(`controller.enqueue((${bytesOf(RANDOM_MODEL)}).subarray(0, 5000)); controller.error(new Error('unplugged'))`)],
      'a stream of half a file': ['bad-gguf', /./, stream(`controller.enqueue((${bytesOf(RANDOM_MODEL)}).subarray(0, 200000)); controller.close()`)],
      'a stream of nothing': ['bad-gguf', /./, stream('controller.close()')],
      'an array that was given away': ['bad-gguf|bad-option|io', /./, `(async () => { const bytes = ${bytesOf(RANDOM_MODEL)}; structuredClone(bytes.buffer, { transfer: [bytes.buffer] }); return bytes })()`],
      'a buffer that was given away': ['bad-gguf|bad-option|io', /./, `(async () => { const { buffer } = ${bytesOf(RANDOM_MODEL)}; structuredClone(buffer, { transfer: [buffer] }); return buffer })()`],
      'an empty array': ['bad-gguf', /./, `new Uint8Array()`]
    }
    for (const [name, [codes, message, source]] of Object.entries(failures)) {
      const found = await failure(harness, source, worker)
      expect(found, name).toMatch(new RegExp(`^(${codes}): `))
      expect(found, name).toMatch(message)
    }
  })

  test(`a file that changes on the disk is an error, ${where}`, async ({ harness }) => {
    const folder = mkdtempSync(join(tmpdir(), 'ternlight-'))
    const path = join(folder, 'model.gguf')
    try {
      for (const [change, code] of [
        [() => truncateSync(path, 200_000), /^io: .*file/],
        [() => writeFileSync(path, 'another file altogether'), /^io: .*file/],
        // Chromium then says that it has no bytes, rather than that it cannot be read.
        [() => rmSync(path), /^(io: .*file|bad-gguf: .*ends at 0)/]
      ] as const) {
        copyFileSync(`.${RANDOM_MODEL}`, path)
        await choose(harness, path)
        change()
        expect(await failure(harness, 'window.file', worker), String(change)).toMatch(code)
      }
      // In the middle of it.
      copyFileSync(`.${MODEL}`, path)
      await choose(harness, path)
      await harness.exposeFunction('change', () => truncateSync(path, 5_000_000))
      const found = await harness.evaluate(async worker => {
        const { file, change } = window as unknown as { file: File, change(): Promise<void> }
        let reports = 0
        return window.ternlight.BitNet.load(file, { worker, onProgress: () => { if (++reports === 1) void change() } })
          .then(async model => {
            // Read before it changed: whole, then.
            const { length } = await model.logits(Uint32Array.of(1))
            return `none: ${length}`
          }, error => `${error.code}: ${error.message}`)
      }, worker)
      expect(found).toMatch(/^(io: |none: 4096)/)
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
}
