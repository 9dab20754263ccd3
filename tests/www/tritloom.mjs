// The package for modules that `load.mjs` loads: the one that the tests import too, so that its classes are the same.
export const { BitNet, BitNetError } = globalThis.tritloomOfTests
