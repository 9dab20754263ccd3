// The browsers that measure, and the flags with which they reach the GPU.
import { Stop } from '../report.mjs'
import { findBrowser } from '../setup/browser.mjs'
import { findFirefox, firefoxFlags } from '../setup/firefox.mjs'
import { chromiumFlags, LoneBrowser } from './alone.mjs'

const SOFTWARE =
  '--headless=new --no-sandbox --enable-unsafe-webgpu --use-webgpu-adapter=swiftshader ' +
  // With this feature SwiftShader compiles ten times as long: see playwright.config.ts.
  '--enable-features=Vulkan --disable-dawn-features=use_vulkan_zero_initialize_workgroup_memory_extension'

/** Chromium's flags. `CHROMIUM_GPU_FLAGS` names them for a card. */
export function browserFlags() {
  const flags = (process.env.CHROMIUM_GPU_FLAGS ?? SOFTWARE).split(' ')
  return flags.filter(flag => flag && !flag.startsWith('--remote-debugging-port'))
}

/**
 * A browser that does nothing else.
 * @param {{ address: string }} server
 * @param {string} browser chromium or firefox
 */
export function openAlone(server, browser) {
  const url = `${server.address}/scripts/bench/alone.html`
  if (browser === 'chromium') return LoneBrowser.open(findBrowser(), chromiumFlags(browserFlags()), url)
  const executable = findFirefox()
  if (!executable) throw new Stop('There is no Firefox that is new enough. FIREFOX names one.')
  return LoneBrowser.open(executable, firefoxFlags, url)
}
