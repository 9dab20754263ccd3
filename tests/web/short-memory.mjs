// Imported before the package: main memory has no room for the layers that the GPU does not hold. All other arrays
// are made by `new`.
const { construct } = Reflect
Reflect.construct = (target, args, ...others) => {
  if (target === Uint8Array) throw new RangeError('Array buffer allocation failed')
  return construct(target, args, ...others)
}
