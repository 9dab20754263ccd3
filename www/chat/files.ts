// Reads text files that the reader attaches. This file knows nothing of the page.
import { formatBytes } from 'tritloom/words'
import type { AttachedFile } from './conversation.ts'

/** More bytes than fit into the context of any known model. */
const MAX_BYTES = 1_000_000

/** Reads a file as text. Throws an error for people. */
export async function readText(file: File): Promise<AttachedFile> {
  const { name, size } = file
  if (size > MAX_BYTES) {
    throw new Error(`${name} has ${formatBytes(size)}, and a model can read ${formatBytes(MAX_BYTES)} at most. Attach a part of it.`)
  }
  const text = decoded(await bytesOf(file))
  if (text === undefined) throw new Error(`${name} is no text file. Save its text as a .txt file and attach that.`)
  if (text.trim() === '') throw new Error(`${name} has no text. Choose another file.`)
  return { name, text: text.replaceAll('\r\n', '\n') }
}

async function bytesOf(file: File): Promise<ArrayBuffer> {
  try {
    return await file.arrayBuffer()
  } catch {
    throw new Error(`${file.name} cannot be read. Check that it is still there, and choose it again.`)
  }
}

/** The text of a file; undefined if it is none. */
function decoded(bytes: ArrayBuffer): string | undefined {
  const start = new Uint8Array(bytes.slice(0, 2))
  const encoding = start[0] === 0xff && start[1] === 0xfe ? 'utf-16le' : start[0] === 0xfe && start[1] === 0xff ? 'utf-16be' : 'utf-8'
  try {
    const text = new TextDecoder(encoding, { fatal: true }).decode(bytes)
    return text.includes('\0') ? undefined : text
  } catch {
    return undefined
  }
}
