// `model.inspect` in the thread of the page.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inRoot } from '../../scripts/paths.mjs'
import { using } from './support.mjs'

const MODEL = inRoot('tests', 'data', 'models', 'qwen3-q2_0.gguf')

test('its progress is told when the crate has returned', async () => {
  await using(MODEL, { backend: 'cpu', worker: false, cache: 'off' }, async model => {
    const stacks = []
    const onProgress = () => stacks.push(new Error('here').stack)
    await model.inspect('The dog ran.', { what: ['activations'], onProgress })
    assert.ok(stacks.length > 1)
    for (const stack of stacks) assert.doesNotMatch(stack, /wasm/)
  })
})
