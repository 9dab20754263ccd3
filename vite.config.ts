// Serves and builds the demos. They use the package as any site would: built, from pkg/.
import { existsSync, readdirSync } from 'node:fs'
import { resolve } from 'node:path'
import { defineConfig } from 'vite'
import { documents as documentPaths } from './scripts/docs/documents.mjs'
import { readText } from './scripts/paths.mjs'
import { bundledModel } from './www/build/bundled-model.ts'
import { documentation } from './www/build/documentation.ts'
import { documents } from './www/build/documents.ts'
import { evidence } from './www/build/evidence.ts'
import { offlineFiles } from './www/build/offline-files.ts'
import { sharedParts } from './www/build/parts.ts'
import { recipes } from './www/build/recipes.ts'

const here = import.meta.dirname
const www = resolve(here, 'www')

// Every folder of www/ with an index.html is a demo.
const demos = readdirSync(www).filter(name => existsSync(resolve(www, name, 'index.html')))
const pages = Object.fromEntries(demos.map(name => [name, resolve(www, name, 'index.html')]))

// A file without a hash in its name: browsers know a service worker by its address.
const fixedNames: Record<string, string> = { sw: 'sw.js' }

export default defineConfig({
  root: www,
  // Relative addresses, so that dist/ works from any folder of any static host.
  base: './',
  // A wrong address gives a 404, not the landing page.
  appType: 'mpa',
  resolve: {
    alias: [
      { find: /^tritloom$/, replacement: resolve(here, 'pkg/index.js') },
      { find: /^tritloom\/(.*)$/, replacement: resolve(here, 'pkg/$1.js') }
    ]
  },
  plugins: [
    bundledModel(resolve(here, 'models/tiny-stories.gguf')),
    documentation(resolve(here, 'docs'), resolve(here, 'README.md')),
    sharedParts(resolve(www, 'shared')),
    documents(documentPaths().map(path => ({ path, text: readText(path) })), process.env.WITH_DOCS === 'yes'),
    evidence(here),
    recipes(readText('docs/RECIPES.md')),
    offlineFiles()
  ],
  worker: { format: 'es' },
  // The development server serves nothing outside its root, www/, unless it is allowed to.
  server: { fs: { allow: [www, resolve(here, 'pkg')] } },
  build: {
    outDir: resolve(here, 'dist'),
    emptyOutDir: true,
    target: 'es2022',
    sourcemap: true,
    // The AI SDK is one chunk of 700 kB.
    chunkSizeWarningLimit: 800,
    rolldownOptions: {
      // Packages for React say `use client`, which means nothing in a page.
      onLog: (level, log, print) => log.code === 'MODULE_LEVEL_DIRECTIVE' || print(level, log),
      input: {
        home: resolve(www, 'index.html'),
        ...pages,
        sw: resolve(www, 'offline/sw.ts')
      },
      output: { entryFileNames: chunk => fixedNames[chunk.name] ?? 'assets/[name]-[hash].js' }
    }
  }
})
