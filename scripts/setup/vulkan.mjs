// A Vulkan driver in software, so that the native tests run on any machine with the same results.
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { capture, find } from '../process.mjs'
import { aptCommand, aptInstall } from './apt.mjs'

const PACKAGES = ['mesa-vulkan-drivers', 'libvulkan1']
const DRIVERS = ['/usr/share/vulkan/icd.d', '/usr/local/share/vulkan/icd.d', '/etc/vulkan/icd.d']

/** The manifest of Mesa's llvmpipe, or null. */
export const llvmpipe = () => {
  for (const dir of DRIVERS.filter(existsSync)) {
    const name = readdirSync(dir).find(file => file.startsWith('lvp_icd') && file.endsWith('.json'))
    if (name) return join(dir, name)
  }
  return null
}

const loader = () => {
  const ldconfig = find('ldconfig') ?? '/sbin/ldconfig'
  return capture(ldconfig, ['-p'])?.includes('libvulkan.so.1') ?? false
}

export const vulkan = {
  name: 'Software Vulkan',
  check: () => {
    if (process.platform !== 'linux') return "not Linux: the system's own GPU"
    return loader() ? llvmpipe() : null
  },
  install: () => aptInstall(...PACKAGES),
  remedy: () =>
    `run \`${aptCommand(...PACKAGES)}\`, or install Mesa's llvmpipe ("lavapipe") and the Vulkan loader.`
}
