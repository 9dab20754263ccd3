// Every block of JavaScript in the documentation runs, with a small model in place of the one it
// names. Those of docs/NODE.md run in Node: see tests/node/goldens.test.mjs.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { giveAi } from './ai'
import { expect, GOLDEN_MODEL, load, test } from './harness'
import { giveOpenAI } from './openai'
import type { Settings } from '../../pkg/built-in-ai.js'

const files = ['README.md', 'pkg-template/README.md', ...readdirSync('docs').filter(name => name.endsWith('.md') && name !== 'NODE.md').map(name => join('docs', name))]

interface Block {
  file: string
  line: number
  code: string
}

const blocksOf = (file: string): Block[] => {
  const text = readFileSync(file, 'utf8')
  return [...text.matchAll(/^```(\w*)\n(.*?)^```$/gms)]
    .filter(([, language]) => /^(js|ts|javascript|typescript)$/.test(language!))
    .map(({ 2: code, index }) => ({ file, line: text.slice(0, index).split('\n').length, code: code! }))
}

const blocks = files.flatMap(blocksOf)

/**
 * The code around a block: its own imports, a model, a chat, an address, and a function that shows
 * things. Models for the AI SDK are this one too.
 */
const run = async ([code, url]: [code: string, url: string]) => {
  const { tritloom } = window
  const effects: string[] = []
  const exported = new Set(Object.keys(tritloom))
  const body = code.replace(/^import \{(.*)\} from 'tritloom'$/gm, (_, names: string) => {
    for (const name of names.split(',')) if (!exported.has(name.trim())) throw new Error(`no such export: ${name}`)
    return ''
  }).replace(/^import OpenAI from 'openai'$/m, 'const OpenAI = window.openai.default')
    .replace(/^import (\{.*\}) from '(ai|zod)'$/gm, 'const $1 = window.ai')
    .replace(/^import (\{.*\}) from 'tritloom\/ai-sdk'$/m, 'const $1 = aiSdk')
    .replace(/^import (\{.*\}) from 'tritloom\/search'$/m, 'const $1 = await import("/pkg/search.js")')
    .replace(/^import \{ openWeights \} from 'tritloom\/weights'$/m, '')
    .replace(/^import (\{.*\}) from 'tritloom\/(built-in-ai.*)'$/gm, 'const $1 = await builtInAi("/pkg/$2.js")')
  const BitNet = new Proxy(tritloom.BitNet, {
    get: (target, name) => name !== 'load' ? Reflect.get(target, name) : (source: unknown, options: object) => {
      effects.push(`load ${source}`)
      return window.load(typeof source === 'string' ? url : source as Blob, options)
    }
  })
  const used: { dispose(): Promise<void> }[] = []
  const aiSdk = { ...window.aiSdk, tritloom: () => used[used.push(window.aiSdk.tritloom(location.origin + url)) - 1] }
  /** An entry, whose model is the small one. */
  const builtInAi = async (path: string) => {
    const entry = await import(path) as typeof import('../../pkg/built-in-ai.js')
    return { ...entry, configure: ({ url: given, ...rest }: Settings) => entry.configure(given === undefined ? rest : { ...rest, url }) }
  }
  const weights = await import('/pkg/weights.js' as string) as typeof import('../../pkg/weights.js')
  const context = {
    ...tritloom,
    openWeights: () => weights.openWeights(url),
    builtInAi,
    askVisitor: (question: string) => effects.push(question) > 0,
    BitNet,
    aiSdk,
    model: window.model,
    chat: window.model.createChat(),
    address: '/models/model.gguf',
    signal: new AbortController().signal,
    show: (shown: unknown) => effects.push(String(shown)),
    document: { body: { append: (text: unknown) => effects.push(String(text)) } }
  }
  const names = Object.keys(context).filter(name => !new RegExp(`^const (\\{[^}]*\\b)?${name}\\b`, 'm').test(body))
  const given = names.map(name => (context as Record<string, unknown>)[name])
  await new Function(...names, `return (async () => { ${body}\n })()`)(...given)
  for (const model of used) await model.dispose()
  return effects
}

for (const { file, line, code } of blocks) {
  test(`${file}, line ${line}`, { tag: '@quick' }, async ({ shared }) => {
    // It was not made to embed, and says no pooling.
    await load(shared, { pooling: 'mean' }, GOLDEN_MODEL)
    if (code.includes(`from 'openai'`)) await giveOpenAI(shared)
    if (code.includes(`from 'tritloom/ai-sdk'`)) await giveAi(shared)
    expect(await shared.evaluate(run, [code, GOLDEN_MODEL] as [string, string])).not.toEqual([])
  })
}

test('README.md has examples', () => {
  expect(blocks.filter(({ file }) => file === 'README.md').length).toBeGreaterThan(1)
})
