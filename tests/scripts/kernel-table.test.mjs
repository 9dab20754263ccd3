// The table of the kernels' differences.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kernelTable, outcome } from '../../scripts/kernel-table.mjs'

const seen = (name, kernels, differences) => ({ file: 'f', name, ms: 1, kernels, differences })

test('each kernel has its largest difference, and one of a case that failed has none', () => {
  const chromium = {
    browser: 'Mozilla/5.0 Chrome/156.0.0.0 Safari/537.36',
    adapter: { name: 'a card' },
    kernels: ['b', 'a', 'c'],
    cases: [
      seen('one', ['a', 'b/subgroup'], { b: 0.123 }),
      seen('two', ['b'], { b: 0.456 }),
      { file: 'f', name: 'three', ms: 1, failed: 'at 7: 1, not 2' }
    ]
  }
  const firefox = {
    on: 'a CPU', browser: 'Gecko/20100101 Firefox/153.0', adapter: { name: '' }, kernels: ['a', 'b', 'c'], cases: [seen('one', ['c'], { c: 0 })]
  }
  assert.equal(kernelTable([chromium, firefox]), [
    '| kernel | Chromium 156, a card | Firefox 153, a CPU |',
    '| --- | --- | --- |',
    '| `a` | = | not run |',
    '| `b` | 0.46 | not run |',
    '| `c` | not run | 0.00 |'
  ].join('\n'))
  assert.equal(outcome(chromium), 'f: three: at 7: 1, not 2\n2 of 3 cases passed')
  assert.equal(outcome(firefox), '1 of 1 cases passed')
})
