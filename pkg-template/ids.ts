// Ids that are unlike all others. On plain http a page has no `crypto.randomUUID`.

/** A new id: the prefix, and after it `digits` hexadecimal digits. `digits` is even. */
export const newId = (prefix: string, digits = 32): string =>
  prefix + Array.from(crypto.getRandomValues(new Uint8Array(digits / 2)), byte => byte.toString(16).padStart(2, '0')).join('')
