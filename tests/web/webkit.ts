// WebKitGTK for a few tests, in the small browser that comes with it. Nothing drives it from outside: the windows of
// its WebDriver are private ones, which keep nothing on the disk.
import { findWebKit, startWebKit } from '../../scripts/setup/webkit.mjs'
import { testIn } from './tab'

/** Its path, or null. */
export const webKitPath = findWebKit() as string | null

export const test = testIn('WebKit', 'cpu', (folder, pages) => startWebKit(webKitPath!, folder, pages))
