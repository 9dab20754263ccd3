// Two pages that were written for Chrome's Prompt API, with the polyfill: in Chromium and in Firefox.
import { readFileSync } from 'node:fs'
import { expect } from '@playwright/test'
import type { InPage } from './harness'

/** The address of a page of tests/web/built-in-ai/ with the polyfill before its scripts. */
export const withPolyfill = (page: string, more = '') =>
  `/tests/web/built-in-ai/with-polyfill.html?page=${page}.html${more}`

/** Pages and their scripts name nothing of this package. */
export const expectUnchanged = () => {
  for (const name of ['chat.html', 'chat.js', 'extract.html', 'extract.js']) {
    expect(readFileSync(`tests/web/built-in-ai/${name}`, 'utf8')).not.toMatch(/tritloom|polyfill|BitNet/)
  }
}

const SLOW = { timeout: 120_000 }

/** The text of an element, once it is as expected. */
export const expectText = (page: InPage, id: string, text: string | RegExp) =>
  expect.poll(() => page.evaluate(id => document.getElementById(id)?.textContent ?? '', id), SLOW).toMatch(text)

export const ask = (page: InPage, question: string) => page.evaluate(question => {
  document.querySelector<HTMLInputElement>('#question')!.value = question
  document.querySelector<HTMLFormElement>('#form')!.requestSubmit()
}, question)

/**
 * Asks, and clicks the element `id`, if there is one, as soon as a word of the answer is there. Resolves then with the
 * state that the page shows.
 */
export const askForWords = (page: InPage, question: string, id?: string) => page.evaluate(([question, id]) => new Promise(resolve => {
  const answer = document.getElementById('answer')!
  new MutationObserver((_, observer) => {
    if (answer.textContent === '') return
    observer.disconnect()
    const said = document.getElementById('state')!.textContent
    if (id) document.getElementById(id)!.click()
    resolve(said)
  }).observe(answer, { childList: true })
  document.querySelector<HTMLInputElement>('#question')!.value = question!
  document.querySelector<HTMLFormElement>('#form')!.requestSubmit()
}), [question, id])

/** Resolves when the only model of this site is stored. A page that closes earlier loses the rest. */
export const untilStored = (page: InPage) => expect.poll(() => page.evaluate(async () => {
  const { BitNet } = await import(`${location.origin}/pkg/index.js`) as typeof import('../../pkg/index.js')
  return (await BitNet.cache.list()).map(({ complete }) => complete)
}), SLOW).toEqual([true])

const click = (page: InPage, id: string) => page.evaluate(id => document.getElementById(id)!.click(), id)
const numbers = async (page: InPage) =>
  (await page.evaluate(() => document.getElementById('usage')!.textContent!)).split(' of ').map(Number) as [number, number]

/** Chats in chat.html, whose model may be loaded by now. */
export const expectChat = async (page: InPage) => {
  await ask(page, 'Who are you?')
  await expectText(page, 'state', 'answered after 0 to 1')
  await expectText(page, 'answer', /\w/)
  const [usage, window] = await numbers(page)
  expect(usage).toBeLessThan(window)
  await ask(page, 'And how small?')
  await expect.poll(async () => (await numbers(page))[0], SLOW).toBeGreaterThan(usage)
  // A clone of the first session knows less.
  await click(page, 'again')
  await expect.poll(async () => (await numbers(page))[0]).toBeLessThan(usage)
  await askForWords(page, 'Tell me a story.', 'stop')
  await expectText(page, 'state', 'AbortError')
  await click(page, 'end')
  await ask(page, 'Are you there?')
  await expectText(page, 'state', 'InvalidStateError')
}

/** Reads the review in extract.html. */
export const expectExtracts = async (page: InPage) => {
  await click(page, 'go')
  await expectText(page, 'found', /./)
  const said = await page.evaluate(() => document.getElementById('found')!.textContent!)
  expect(said).toMatch(/^\{/)
  const { rating, good, mood, begun, ...rest } = JSON.parse(said)
  expect(rating).toBeGreaterThanOrEqual(0)
  expect(rating).toBeLessThanOrEqual(5)
  expect(typeof good).toBe('boolean')
  expect(['happy', 'sad']).toContain(mood)
  expect(begun).toEqual({ rating: 4, good: expect.any(Boolean) })
  expect(rest).toEqual({
    refused: 'TypeError', tooLong: { name: 'QuotaExceededError', isMore: true }, hasSummary: true, ended: 'InvalidStateError'
  })
}
