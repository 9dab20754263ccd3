// The options of the command line, without a command: all of them reach the package, which takes them.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { inRoot } from '../../scripts/paths.mjs'
import { adapterFile } from './adapter-file.mjs'
import { CACHE, GOLDEN, using } from './support.mjs'

const { ANSWER, answerOf, EMBED, embedOf, GENERATE, LOAD, loadOf, read } = await import(inRoot('pkg', 'node', 'options.js'))

const written = (name, contents) => {
  const path = join(CACHE, name)
  writeFileSync(path, contents)
  return path
}

/** A value for each option; `true` for those without. */
const VALUES = {
  'model': GOLDEN, 'backend': 'cpu', 'threads': '1', 'context': '64', 'kv': 'f16', 'lm-head': 'f16', 'max-gpu-bytes': '1e9', 'i2s-layout': 'x86', 'tokenizer': 'closest',
  'template': 'builtin', 'pooling': 'last', 'adapter': [`${written('adapter.gguf', adapterFile())}=0`], 'strict': true, 'deterministic': true, 'cache': 'use',
  'integrity': `sha256-${createHash('sha256').update(readFileSync(GOLDEN)).digest('base64')}`,
  'max-tokens': '2', 'temperature': '0.5', 'top-k': '5', 'top-p': '0.9', 'min-p': '0.1', 'repeat-penalty': '1.1', 'presence-penalty': '-1',
  'frequency-penalty': '0.5', 'logit-bias': '1=-1', 'seed': '7', 'thinking': true, 'no-thinking': true, 'max-thinking-tokens': '1',
  'prompt-lookup': 'false',
  'raw': true, 'schema': written('schema.json', '{ "enum": ["a"] }'), 'json': true, 'regex': 'a',
  'tools': written('tools.json', '[{ "name": "f", "parameters": { "type": "object" } }]'), 'tool-choice': 'auto',
  'task': 'query', 'instruction': 'Find the page', 'prefix': 'query: ', 'dimensions': '8', 'truncate': true
}
/** The options of one call each, because they exclude one another or need a model of another kind. */
const ALONE = ['raw', 'schema', 'json', 'regex', 'thinking', 'no-thinking', 'max-thinking-tokens']

const argsOf = names => names.flatMap(name => VALUES[name] === true ? [`--${name}`] : [`--${name}`, ...[VALUES[name]].flat()])

test('every option of the tables is taken', async () => {
  const all = { ...LOAD, ...GENERATE, ...ANSWER, ...EMBED }
  assert.deepEqual(Object.keys(all).sort(), Object.keys(VALUES).sort())
  const { source, options } = loadOf(read(argsOf(Object.keys(LOAD)), all).given)
  assert.equal(Object.keys(options).length, Object.keys(LOAD).length - 1)
  const together = Object.keys({ ...GENERATE, ...ANSWER }).filter(name => !ALONE.includes(name) && !name.startsWith('tool'))
  await using(source, options, async model => {
    for (const names of [together, ...ALONE.map(name => [...name === 'max-thinking-tokens' ? ['thinking'] : [], name, 'max-tokens']), ['tools', 'tool-choice', 'max-tokens']]) {
      const { given, rest } = read(argsOf(names), all)
      assert.deepEqual(rest, [])
      const options = answerOf(given)
      // An option that the package does not know, or whose value it does not take, is `bad-option`.
      await model.generate('Who?', options).text().catch(({ code, message }) => {
        assert.ok(code !== 'bad-option' || !/no such option|must be/.test(message), `${names} ${message}`)
      })
    }
    for (const purpose of ['task', 'instruction', 'prefix']) {
      const [vector] = await model.embed(['Who?'], embedOf(read(argsOf([purpose, 'dimensions', 'truncate']), all).given))
      assert.equal(vector.length, 8)
    }
  })
})

/** The options of a command of the crate. */
const ofCrate = (...command) => {
  const help = execFileSync('cargo', ['run', '--quiet', '--', ...command, '--help'], { cwd: inRoot(), encoding: 'utf8' })
  return [...help.matchAll(/^ +(?:-\w, )?--([\w-]+)/gm)].map(([, name]) => name).filter(name => !['help', 'version'].includes(name))
}

test('the options have the names of those of the crate\'s command', () => {
  // The crate has several instruction sets, and downloads nothing. Its answers have no use for a pooling.
  const of = (...tables) => Object.keys(Object.assign({}, ...tables))
  const only = ['cache', 'integrity', 'pooling']
  const answers = of(LOAD, GENERATE, ANSWER).filter(name => !only.includes(name))
  assert.deepEqual(answers.concat('instructions').sort(), ofCrate().sort())
  // Its command for vectors has fewer options of a load.
  const embed = ofCrate('embed').filter(name => name !== 'instructions')
  assert.deepEqual(embed.filter(name => !(name in LOAD)).sort(), of(EMBED).sort())
})
