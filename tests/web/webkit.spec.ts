// The package and the demos in WebKitGTK as it comes: without WebGPU, relaxed SIMD, files of the page's own and streams
// of bytes. So the CPU computes, what is stored is in IndexedDB, and no threads make requests. The behaviour of all this
// is tested in Chromium.
import { expect } from '@playwright/test'
import {
  expectAborts, expectChatDemo, expectDisposes, expectGoldens, expectOffline, expectResumes, expectSharedDownload,
  expectWidgetDemo, WHO_ARE_YOU
} from './elsewhere'
import { expectFormats } from './formats'
import { bundledGoldens, GOLDEN_MODEL, goldensInOrder, load, loadReporting, MODEL } from './harness'
import { openHarness } from './tab'
import { test, webKitPath } from './webkit'

// Setup installs WebKitGTK where it can. Where it cannot, it says so, and the other tests still run.
test.skip(!webKitPath, 'no WebKitGTK, or none that is new enough')

test('the CPU computes by itself, and gives a golden text', async ({ tabs: [tab] }) => {
  const found = await tab.evaluate(() => window.tritloom.BitNet.availability())
  expect(found).toMatchObject({ available: true, backend: 'cpu' })
  const { notes } = await loadReporting(tab, GOLDEN_MODEL, { backend: 'auto' })
  expect(notes).toEqual([{ kind: 'cpu', why: expect.stringMatching(/^this browser has no WebGPU/) }])
  const { backend, kernels } = await tab.evaluate(() => window.model.info)
  expect({ backend, kernels }).toEqual({ backend: 'cpu', kernels: expect.arrayContaining(['I2_S/simd128']) })
  await expectGoldens(tab, WHO_ARE_YOU)
})

test('gives the golden texts, in a worker and in this thread', { tag: '@all' }, async ({ tabs: [tab] }) => {
  for (const worker of [true, false]) {
    await load(tab, { worker }, GOLDEN_MODEL)
    await expectGoldens(tab, goldensInOrder)
  }
  await load(tab, {}, MODEL)
  await expectGoldens(tab, bundledGoldens.prompts.filter(({ name }) => name === 'who'))
})

test('answers keep to their formats', { tag: '@all' }, ({ tabs: [tab] }) => expectFormats(tab, GOLDEN_MODEL, true))

test('an abort ends a generation, and the next one is right', { tag: '@all' }, async ({ tabs: [tab] }) => {
  for (const worker of [true, false]) {
    await load(tab, { worker }, GOLDEN_MODEL)
    await expectAborts(tab)
  }
})

test('a download that was aborted goes on where it was, and then works offline', { tag: '@all' }, async ({ tabs: [tab] }) => {
  const path = await expectResumes(tab)
  await openHarness(tab, 'cpu')
  await expectOffline(tab, path)
})

test('two tabs download once', { tag: '@all' }, ({ tabs }) => expectSharedDownload(tabs))

test('a disposed model refuses, and what it held is free for the next', { tag: '@all' }, ({ tabs: [tab] }) => expectDisposes(tab))

// Also without `@all`: only here does a bundled script of a worker import others in WebKit.
test('the chat demo answers', ({ tabs: [tab] }) => expectChatDemo(tab, 'simd128'))

test('the TL;DR demo sums up its story', { tag: '@all' }, ({ tabs: [tab] }) => expectWidgetDemo(tab, 'cpu'))
