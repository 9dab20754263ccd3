// The recipe on a tiny model, with PYTHON or else python3.
import { existsSync } from 'node:fs'
import { inRoot } from '../paths.mjs'
import { capture, runOpen } from '../process.mjs'
import { Stop } from '../report.mjs'

/** Runs smoke.py. Where there is no PyTorch, says so instead. */
export const smokeTraining = async () => {
  const python = process.env.PYTHON ?? 'python3'
  if (capture(python, ['-c', 'import torch, numpy, tokenizers']) === null)
    return `left out: ${python} has no PyTorch, NumPy or tokenizers (scripts/train/requirements.txt)`
  if (!existsSync(inRoot('pkg', 'node', 'index.js'))) throw new Stop('pkg/ is missing: `npm run build` makes it')
  await runOpen(python, [inRoot('scripts', 'train', 'smoke.py')])
  return undefined
}
