// The comparison of two models' answers.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { inRoot } from '../../scripts/paths.mjs'
import { count, record, sheet, verdict } from '../../scripts/train/judging.mjs'

const prompts = JSON.parse(readFileSync(inRoot('models', 'prompts.json'), 'utf8'))
const answers = what => Object.fromEntries(prompts.map(({ id }) => [id, `the ${what} answer to ${id}`]))

/** Points as a judge gives them who sees the key. */
const points = (key, ofModel) =>
  Object.fromEntries(prompts.map(({ id, kind }) => [id, { X: ofModel(key[id].X, kind), Y: ofModel(key[id].Y, kind) }]))

test('the sheet does not say who wrote an answer, and the key does', () => {
  let n = 0
  const { text, key } = sheet(prompts, answers('first'), answers('second'), () => (n++) % 2 === 0)
  assert.equal(Object.keys(key).length, 100)
  assert.deepEqual([key[1], key[2]], [{ X: 'new', Y: 'old' }, { X: 'old', Y: 'new' }])
  assert.ok(text.includes('**X:** the second answer to 1\n\n**Y:** the first answer to 1\n'), text.slice(0, 500))
  assert.ok(text.includes('**X:** the first answer to 2\n'))
})

test('points are counted for the model that wrote the answer, and every condition of the bar can fail', () => {
  const { key } = sheet(prompts, answers('old'), answers('new'), () => Math.random() < 0.5)
  const judged = ofModel => {
    const rows = count(prompts, points(key, ofModel), key)
    return { rows, holds: verdict(rows).map(({ holds }) => holds) }
  }
  const better = judged(model => (model === 'new' ? 2 : 0))
  assert.deepEqual(better.rows.all, { old: 0, new: 200, of: 200 })
  assert.deepEqual(better.rows.instruction, { old: 0, new: 60, of: 60 })
  assert.deepEqual(better.holds, [true, true, true, true, true])
  assert.deepEqual(judged(model => (model === 'new' ? 1 : 0)).holds, [false, true, false, false, true])
  assert.deepEqual(judged(() => 2).holds, [true, false, true, true, true])
  assert.deepEqual(judged((model, kind) => (model === 'new' && kind !== 'summary' ? 2 : 0)).holds, [true, true, false, true, true])
  assert.deepEqual(judged((model, kind) => ((model === 'new') === (kind !== 'story') ? 2 : 0)).holds, [true, true, true, true, false])
})

test('the record has each answer with the points of the model that wrote it', () => {
  const { key } = sheet(prompts, answers('old'), answers('new'), () => Math.random() < 0.5)
  const { points: rows, answers: all } = record(prompts, answers('old'), answers('new'), points(key, model => (model === 'new' ? 2 : 1)), key)
  assert.deepEqual(rows.all, { old: 100, new: 200, of: 200 })
  assert.equal(all.length, 100)
  const { id, kind } = prompts[41]
  assert.deepEqual(all[41], {
    id, kind, old: { answer: answers('old')[id], points: 1 }, new: { answer: answers('new')[id], points: 2 }
  })
})

test('points that are missing or none of 0, 1 and 2 are refused', () => {
  const { key } = sheet(prompts, answers('old'), answers('new'), () => true)
  const given = points(key, () => 1)
  assert.throws(() => count(prompts, { ...given, 7: { X: 1 } }, key), /Prompt 7, Y/)
  assert.throws(() => count(prompts, { ...given, 7: { X: 1, Y: 3 } }, key), /Prompt 7, Y: 3/)
})
