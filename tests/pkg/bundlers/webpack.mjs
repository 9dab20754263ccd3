// webpack finds the workers and the WebAssembly by itself.
import { copyFileSync } from 'node:fs'
import { resolve } from 'node:path'
import webpack from 'webpack'

const path = resolve('dist/webpack')
const config = {
  mode: 'production',
  entry: { main: './main.js' },
  output: { path, publicPath: 'auto' },
  performance: false
}
webpack(config, (error, stats) => {
  if (error || stats.hasErrors()) throw error ?? new Error(stats.toString())
  copyFileSync('index.html', resolve(path, 'index.html'))
})
