// Rollup does not follow `new URL('…', import.meta.url)`: the workers are entries of their own,
// beside the others, and the WebAssembly is copied there.
import { copyFileSync } from 'node:fs'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import resolve from '@rollup/plugin-node-resolve'
import { rollup } from 'rollup'

const dir = 'dist/rollup'
const bundle = await rollup({
  input: {
    main: 'main.js',
    worker: 'tritloom/worker',
    'disk-worker': 'tritloom/disk-worker',
    'fetch-worker': 'tritloom/fetch-worker',
    'compute-worker': 'tritloom/compute-worker'
  },
  plugins: [resolve()]
})
await bundle.write({ dir, format: 'es' })
const ofCpu = ['relaxed', 'simd'].flatMap(name => [`cpu/tritloom-${name}.js`, `cpu/tritloom-${name}.wasm`])
for (const name of ['tritloom_bg.wasm', 'grammar.wasm', ...ofCpu])
  copyFileSync(fileURLToPath(import.meta.resolve(`tritloom/${name}`)), `${dir}/${basename(name)}`)
copyFileSync('index.html', `${dir}/index.html`)
