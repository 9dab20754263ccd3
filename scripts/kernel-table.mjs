// The results of scripts/kernel-cases.mjs in words.

/** The browser and the adapter of a result. Some browsers do not name the adapter: then `on` was given. */
const where = ({ browser, adapter, on }) => {
  const [, name, version] = /(Firefox|Chrome)\/(\d+)/.exec(browser) ?? [null, browser, '']
  return `${name.replace('Chrome', 'Chromium')} ${version}, ${on ?? adapter.name}`
}

/** How many cases failed, and why. */
export const outcome = ({ cases }) => {
  const failed = cases.filter(({ failed }) => failed)
  const lines = failed.map(({ file, name, failed }) => `${file}: ${name}: ${failed}`)
  return [...lines, `${cases.length - failed.length} of ${cases.length} cases passed`].join('\n')
}

/**
 * A table with a row for each kernel and a column for each result. A cell has the largest difference from the reference,
 * divided by the tolerance. `=` stands for a kernel that is compared to the bit, or by the token that it chooses.
 */
export const kernelTable = results => {
  const columns = results.map(result => ({ title: where(result), cells: largest(result) }))
  const names = [...new Set(results.flatMap(({ kernels }) => kernels))].sort()
  const row = cells => `| ${cells.join(' | ')} |`
  return [
    row(['kernel', ...columns.map(({ title }) => title)]),
    row(['---', ...columns.map(() => '---')]),
    ...names.map(name => row([`\`${name}\``, ...columns.map(({ cells }) => cells.get(name) ?? 'not run')]))
  ].join('\n')
}

/** The cell of each kernel that ran in a case that passed. */
const largest = ({ cases }) => {
  const cells = new Map()
  const passed = cases.filter(({ failed }) => !failed)
  for (const { kernels } of passed) for (const label of kernels) cells.set(label.split('/')[0], '=')
  const shares = new Map()
  for (const [name, share] of passed.flatMap(({ differences }) => Object.entries(differences)))
    shares.set(name, Math.max(share, shares.get(name) ?? 0))
  for (const [name, share] of shares) cells.set(name, share.toFixed(2))
  return cells
}
