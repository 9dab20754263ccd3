// `npm run train:smoke`: runs smoke.py, with PYTHON or else python3. Where that has no PyTorch, it is skipped.
import { existsSync } from 'node:fs'
import { inRoot } from '../paths.mjs'
import { capture, runOpen } from '../process.mjs'
import { main, Stop } from '../report.mjs'

await main(async () => {
  const python = process.env.PYTHON ?? 'python3'
  const versions = capture(python, ['-c', 'import torch, numpy, tokenizers; print(torch.__version__)'])
  if (versions === null) {
    console.log(`train:smoke is skipped: ${python} lacks PyTorch, NumPy or tokenizers (pip install -r scripts/train/requirements.txt)`)
    return
  }
  if (!existsSync(inRoot('pkg', 'node', 'index.js'))) throw new Stop('pkg/ is missing: npm run build makes it')
  await runOpen(python, [inRoot('scripts', 'train', 'smoke.py')])
})
