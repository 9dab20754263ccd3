// esbuild does not follow `new URL('…', import.meta.url)`: the workers are entries of their own,
// beside the others, and the WebAssembly is copied there.
import { copyFileSync } from 'node:fs'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const outdir = 'dist/esbuild'
await build({
  entryPoints: {
    main: 'main.js',
    worker: 'tritloom/worker',
    'disk-worker': 'tritloom/disk-worker',
    'fetch-worker': 'tritloom/fetch-worker',
    'compute-worker': 'tritloom/compute-worker'
  },
  outdir,
  bundle: true,
  splitting: true,
  minify: true,
  format: 'esm',
  target: 'es2022'
})
const ofCpu = ['relaxed', 'simd'].flatMap(name => [`cpu/tritloom-${name}.js`, `cpu/tritloom-${name}.wasm`])
for (const name of ['tritloom_bg.wasm', 'grammar.wasm', ...ofCpu])
  copyFileSync(fileURLToPath(import.meta.resolve(`tritloom/${name}`)), `${outdir}/${basename(name)}`)
copyFileSync('index.html', `${outdir}/index.html`)
