// `npm run bench`, as a user runs it. Those of the GPU take over ten seconds: each load compiles the kernels.
// That of limits takes half a minute: it loads five times, and the benchmark waits after each.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from '@playwright/test'

/** Its report on the package as it was built, and what it says meanwhile. */
const bench = async (...args: string[]) => {
  const script = ['scripts/bench.mjs', '--no-build', '--json', '--model', 'tests/data/golden/golden.gguf', '--decode', '16', '--tokens', '8', ...args]
  const { executablePath, args: flags } = test.info().project.use.launchOptions!
  const env = { ...process.env, CHROMIUM: executablePath!, CHROMIUM_GPU_FLAGS: ['--headless=new', ...flags!].join(' ') }
  const { stdout, stderr } = await promisify(execFile)(process.execPath, script, { env, maxBuffer: 1 << 24 })
  return { report: JSON.parse(stdout), told: stderr }
}

test('the benchmark measures what it says', async () => {
  const { report, told } = await bench('--prefill', '32', '--runs', '2', '--loads', '1', '--sampling', '--options', '--batch', '--format', '--decide', '2', '--soak', '20', '--backend', 'cpu')
  const whats = [
    'time to first token, 32-token prompt', 'prefill, 32-token prompt', 'decode, 16 tokens of context',
    'decode, 16 tokens of context, temperature', 'decode, 16 tokens of context, top-k and top-p',
    'decode, 16 tokens of context, top-p', 'decode, 16 tokens of context, min-p', 'decode, 16 tokens of context, penalties',
    'decode, 16 tokens of context, logitBias', 'decode, 16 tokens of context, logprobs',
    ...['penalties', 'logitBias', 'logprobs', 'all three'].map(what => `decode, 16 tokens of context, top-k, top-p and ${what}`),
    '8 answers at once, their tokens together', 'abort to its answer', "abort to another answer's first token"
  ]
  const figures = report.figures.filter(({ what }: { what: string }) => whats.includes(what))
  expect(figures.map(({ what }: { what: string }) => what)).toEqual(whats)
  for (const { runs, least, median, most } of figures) {
    expect(runs).toBe(2)
    expect(least).toBeGreaterThan(0)
    expect(median).toBeGreaterThanOrEqual(least)
    expect(most).toBeGreaterThanOrEqual(median)
  }
  const held = report.figures.map(({ what }: { what: string }) => what).filter((what: string) => /^[18] at once, /.test(what))
  expect(held.map((what: string) => what.replace(/ \d+ % forced,/, ''))).toEqual([
    ...[
      'no format, whole answers', 'no format, decode', 'words, whole answers', 'words, its chosen tokens', 'letters, whole answers', 'letters, decode',
      'records, whole answers', 'records, its chosen tokens', 'records with prompt lookup, whole answers', 'records with prompt lookup, its chosen tokens'
    ].map(what => `1 at once, ${what}`),
    ...[
      'no format, whole answers', 'words, whole answers', 'words, its chosen tokens', 'letters, whole answers', 'records, whole answers',
      'records, its chosen tokens', 'records with prompt lookup, whole answers', 'records with prompt lookup, its chosen tokens'
    ].map(what => `8 at once, ${what}`)
  ])
  const decided = report.figures.filter(({ what }: { what: string }) => what.startsWith('2 questions'))
  expect(decided.map(({ unit, median }: { unit: string, median: number }) => [unit, median > 0])).toEqual([['s', true], ['s', true]])
  expect(report.figures).toContainEqual(expect.objectContaining({ what: 'load from storage', runs: 1 }))
  const early = { what: 'time to first token, 16-token prompt, right after the load' }
  expect(report.figures).toContainEqual(expect.objectContaining(early))
  expect(report.soak.tokens).toBe(20)
  expect(report.leftOut).toEqual([])
  expect(report.info.backend).toBe('cpu')
  expect(told).toContain('measuring: decode, 16 tokens of context\n')
})

test('the benchmark profiles the steps of the GPU', async () => {
  const { report } = await bench('--prefill', '32', '--runs', '1', '--loads', '1', '--sampling', '--profile')
  const decode = report.figures.find(({ what }: { what: string }) => what === 'decode, 16 tokens of context')
  expect(decode.share).toBeCloseTo(decode.median * decode.bytesPerToken / 1e9 / report.bandwidth, 9)
  const profiles = report.profiles.map((step: { context: number, tokens: number, drawn?: string }) => [step.context, step.tokens, step.drawn])
  expect(profiles).toEqual([
    [16, 1, undefined], [16, 1, 'temperature'], [16, 1, 'top-k and top-p'], [16, 1, 'top-p'], [16, 1, 'min-p'], [0, 32, undefined]
  ])
  const sifted = report.profiles.map(({ kernels }: { kernels: { kernel: string }[] }) => kernels.some(({ kernel }) => kernel === 'sample_sift'))
  expect(sifted).toEqual([false, false, true, true, true, false])
})

test('the benchmark of visits has the times until the model can be used and until it is stored', async () => {
  const { report } = await bench('--visits', '--loads', '1')
  const median = (what: string) => report.figures.find((figure: { what: string }) => figure.what === what).median
  expect(median('load and store, first visit')).toBeGreaterThanOrEqual(median('load first visit'))
  for (const visit of ['second visit', 'not storing, first visit', 'not storing, again']) {
    expect(median(`load ${visit}`)).toBeGreaterThan(0)
    expect(median(`first answer's kernels compiled, ${visit}`)).toBeGreaterThan(0)
    expect(median(`ready to all kernels compiled, ${visit}`)).toBeGreaterThan(0)
    expect(median(`last byte to ready, ${visit}`)).toBeGreaterThan(0)
  }
})

test('the benchmark of limits decodes without what it says', async () => {
  const { report, told } = await bench('--limits', '--runs', '1', '--context', '300', '--kv', 'int8')
  expect(report.info).toMatchObject({ contextLength: 300, kv: 'int8' })
  const names = ['with everything', 'bindings of 128 MiB', 'without subgroups', 'without packed dot', 'without both']
  expect(report.limits.map(({ name }: { name: string }) => name)).toEqual(names)
  for (const { name, kernels, figures } of report.limits) {
    expect(figures.map(({ what }: { what: string }) => what)).toEqual(['decode, 16 tokens of context'])
    expect(figures[0].median).toBeGreaterThan(0)
    expect(kernels.some((kernel: string) => kernel.includes('/subgroup'))).toBe(!['without subgroups', 'without both'].includes(name))
    expect(kernels.some((kernel: string) => kernel.includes('/no-packed-dot'))).toBe(['without packed dot', 'without both'].includes(name))
  }
  expect(told).toContain('measuring: without subgroups: decode, 16 tokens of context\n')
})

// It fetches wllama from npm. The golden model's architecture is one that llama.cpp does not know.
test('beside another engine, it says what that does not take, and ends', { tag: '@all' }, async () => {
  const { report, told } = await bench('--peer', 'wllama', '--backend', 'cpu', '--threads', '1', '--prefill', '32', '--runs', '1', '--patience', '30')
  expect(report.peer).toBe('@wllama/wllama 3.13.0')
  expect(report.engines).toEqual(['tritloom', 'wllama'])
  expect(report.rows.map(({ what, threads }: { what: string, threads: number }) => [what, threads])).toEqual([
    ['decode, 16 tokens of context', 1], ['prompt of 32 tokens', 1]
  ])
  for (const { figures: [ours, theirs] } of report.rows) {
    expect(ours).toMatchObject({ runs: 1, threads: 1 })
    expect(ours.median).toBeGreaterThan(0)
    expect(theirs).toEqual({ why: expect.stringMatching(/\w/) })
  }
  expect(told).toBe('measuring: tritloom, threads: 1\nmeasuring: wllama, threads: 1\n')
})

test('the benchmark leaves out what takes longer than it has patience for', async () => {
  const { report, told } = await bench('--loads', '2', '--patience', '0', '--context', '300', '--backend', 'cpu')
  expect(report.info.contextLength).toBe(300)
  // Longer prompts do not fit into the context.
  const whats = [16, 256].map(length => `time to first token, ${length}-token prompt`)
  expect(report.leftOut.map(({ what }: { what: string }) => what)).toEqual([...whats, 'decode, 16 tokens of context'])
  for (const { seconds } of report.leftOut) expect(seconds).toBeGreaterThan(0)
  for (const { runs } of report.figures) expect(runs).toBe(1)
  expect(told).toBe('measuring: load 1 of 2\nmeasuring: abort\n')
})
