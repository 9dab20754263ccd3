// Writes an adapter of the golden model, whose values in the first block it changes.

const text = value => {
  const bytes = new TextEncoder().encode(value)
  return Buffer.concat([u64(bytes.length), bytes])
}
const u32 = value => Buffer.from(Uint32Array.of(value).buffer)
const u64 = value => Buffer.from(BigUint64Array.of(BigInt(value)).buffer)
const STRING = 8

/** The bytes of a GGUF file. Both tensors have a length that is a multiple of its alignment. */
export const adapterFile = () => {
  const metadata = { 'general.type': 'adapter', 'general.architecture': 'bitnet-b1.58', 'general.name': 'changed', 'adapter.type': 'lora' }
  const tensors = [['blk.0.attn_v.weight.lora_a', [128, 4]], ['blk.0.attn_v.weight.lora_b', [4, 64]]]
  const entries = Object.entries(metadata).map(([key, value]) => Buffer.concat([text(key), u32(STRING), text(value)]))
  let end = 0
  const table = tensors.map(([name, ne]) => {
    const offset = end
    end += 4 * ne[0] * ne[1]
    return Buffer.concat([text(name), u32(2), ...ne.map(u64), u32(0), u64(offset)])
  })
  const header = Buffer.concat([Buffer.from('GGUF'), u32(3), u64(2), u64(entries.length), ...entries, ...table])
  const values = Float32Array.from({ length: end / 4 }, (_, n) => (n * 37 % 64) / 64 - 0.5)
  return Buffer.concat([header, Buffer.alloc((32 - header.length % 32) % 32), Buffer.from(values.buffer)])
}
