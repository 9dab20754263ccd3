// `npm start`: sets up, builds, and serves the demos with the bundled model.
//
//   npm start -- --port 8080 --host    or PORT and HOST in the environment
import { buildPackage } from './build/pkg.mjs'
import { buildDemos } from './demos.mjs'
import { heading, main, Stop } from './report.mjs'
import { setUp } from './setup/steps.mjs'
import { parseArgs } from 'node:util'

/** `--host` alone means every address of this machine, as with Vite. */
const options = () => {
  const args = process.argv.slice(2).map(arg => (arg === '--host' ? '--host=' : arg))
  try {
    const { values } = parseArgs({
      args,
      options: { port: { type: 'string' }, host: { type: 'string' } }
    })
    const port = Number(values.port ?? process.env.PORT ?? 5173)
    if (!Number.isInteger(port) || port < 0 || port > 65535)
      throw new Error(`${values.port ?? process.env.PORT} is not a port.`)
    const host = values.host ?? process.env.HOST
    return { port, host: host === '' ? true : host }
  } catch (error) {
    throw new Stop(`${error.message}\nUsage: npm start -- [--port 5173] [--host [ADDRESS]]`)
  }
}

/** They isolate the demos from other origins, so that the CPU has threads. */
const headers = { 'cross-origin-opener-policy': 'same-origin', 'cross-origin-embedder-policy': 'require-corp' }

await main(async () => {
  const { port, host } = options()
  await setUp()
  buildPackage()
  buildDemos()

  // Imported here because the setup installs Vite.
  const { preview } = await import('vite')
  const server = await preview({ preview: { port, host, open: false, headers } })
  heading('\nThe demos are at')
  server.printUrls()
  const [address] = [...server.resolvedUrls.local, ...server.resolvedUrls.network]
  heading(`  Chat: ${address}chat/   TL;DR: ${address}tldr/`)
  heading(`  A form from a text: ${address}form/   A page with tools: ${address}tools/`)
  heading(`  A chat with React and the AI SDK: ${address}ai-chat/`)
  heading(`  The Prompt API: ${address}built-in-ai/`)
  if (host)
    heading(
      '\nBrowsers offer WebGPU on localhost and over https only: for other machines, put https in front.'
    )
  heading('\nCtrl-C stops the server.')
})
