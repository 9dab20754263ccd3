// Ids of conversations and turns.

/** A new id. `crypto.randomUUID` is not there in pages without https. */
export const newId = (): string => [...crypto.getRandomValues(new Uint8Array(12))].map(byte => byte.toString(16).padStart(2, '0')).join('')
