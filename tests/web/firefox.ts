// Firefox for a few tests. Nothing drives it from outside: while WebDriver BiDi does, Firefox 153
// now and then never returns from making a worker inside a worker.
import { spawn } from 'node:child_process'
import { findFirefox, firefoxFlags } from '../../scripts/setup/firefox.mjs'
import { llvmpipe } from '../../scripts/setup/vulkan.mjs'
import { testIn } from './tab'

/** Its path, or null. */
export const firefoxPath = findFirefox() as string | null

export const test = testIn('Firefox', 'webgpu', async (folder, pages) => {
  // On Linux the driver of the native tests, unless the environment names another.
  const driver = process.env.VK_DRIVER_FILES || llvmpipe()
  const env = driver ? { ...process.env, VK_DRIVER_FILES: driver } : process.env
  return [spawn(firefoxPath!, [...firefoxFlags(folder), ...pages], { env, stdio: 'ignore' })]
})
