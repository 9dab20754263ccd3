// The folder of stored models.
import { homedir } from 'node:os'
import { join } from 'node:path'

const FOLDERS: Partial<Record<NodeJS.Platform, () => string>> = {
  darwin: () => join(homedir(), 'Library', 'Caches'),
  win32: () => process.env['LOCALAPPDATA'] || join(homedir(), 'AppData', 'Local')
}

/** `TRITLOOM_CACHE`, or else a folder among those that the system has for such files. */
export function place(): string {
  const { TRITLOOM_CACHE: chosen, XDG_CACHE_HOME: caches } = process.env
  if (chosen) return chosen
  return join(FOLDERS[process.platform]?.() ?? (caches || join(homedir(), '.cache')), 'tritloom')
}
