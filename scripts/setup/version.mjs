// Versions as numbers.

const numbers = version => version.split('.').map(part => parseInt(part, 10))

/** Whether `version` is `wanted` or newer: `'1.96.0'`, `'1.95'`. */
export const atLeast = (version, wanted) => {
  const [have, want] = [numbers(version), numbers(wanted)]
  for (let i = 0; i < want.length; i++) {
    const difference = (have[i] ?? 0) - want[i]
    if (difference !== 0) return difference > 0
  }
  return true
}

/** The first version in a text such as `rustc 1.95.0 (5980…)`, or null. */
export const versionIn = text => /\d+\.\d+(\.\d+)?/.exec(text ?? '')?.[0] ?? null
