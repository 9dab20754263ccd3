// Prebuilt programs: downloads an archive, compares its SHA-256 with the one recorded here, and unpacks it.
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { runQuietly } from '../process.mjs'
import { Stop } from '../report.mjs'

/**
 * The SHA-256 of each archive that the setup may download, by its name, which has the version and the
 * platform. An archive without a row is never downloaded: cargo compiles the program instead, and
 * verifies its sources.
 *
 * GitHub tells the sums of a release: the `digest` of each of the `assets` in
 * `https://api.github.com/repos/OWNER/NAME/releases/tags/TAG`. Mozilla's are in the `SHA256SUMS` of
 * each release on archive.mozilla.org.
 */
export const SUMS = {
  'wasm-pack-v0.15.0-x86_64-unknown-linux-musl.tar.gz':
    'c09f971ecaed9a2efc80fdcea7a00ef6b53c7fadc8c57d1f61b53a6aa66b668a',
  'wasm-pack-v0.15.0-aarch64-unknown-linux-musl.tar.gz':
    'e17ef0806381c3a0acb9c9ddad643a49facaa5a2ecf657a421d4d8f3357a24b7',
  'wasm-pack-v0.15.0-x86_64-apple-darwin.tar.gz':
    'd3f1a4a33e95f8f0d7801b024e08624c479999ac96aa150908b2394015cd0363',
  'wasm-pack-v0.15.0-aarch64-apple-darwin.tar.gz':
    '0abff4a03d670b6c00ea31d0e1608a72407e355f3d3765e9c30eb45cd5b7e318',
  'firefox-153.0.tar.xz': 'bfc57e7b6b4e6204b11e7e03c4b93cff708e9fb37f6b9948be243455311d82ee'
}

/** The name of an archive: the end of its address. */
const nameOf = address => basename(new URL(address).pathname)

/** Whether the sum of the archive at an address is recorded. */
export const isRecorded = address => nameOf(address) in SUMS

/** An archive with other bytes than those of which the sum was recorded. */
export class WrongSum extends Stop {}

/**
 * Downloads an archive and unpacks the contents of its outermost folder into `folder`. Rejects with
 * `WrongSum` before anything is unpacked if its SHA-256 is not `sum`. `seconds`: how long it may take.
 */
export const unpack = async (
  address,
  folder,
  { log = 'setup', seconds = 60, sum = SUMS[nameOf(address)] } = {}
) => {
  if (!sum) throw new Stop(`No SHA-256 is recorded for ${nameOf(address)}.`)
  mkdirSync(folder, { recursive: true })
  const archive = join(folder, nameOf(address))
  const limits = ['--connect-timeout', '5', '--max-time', String(seconds)]
  try {
    await runQuietly(
      'curl',
      ['--fail', '--silent', '--show-error', '--location', ...limits, '--output', archive, address],
      { log }
    )
    const found = createHash('sha256').update(readFileSync(archive)).digest('hex')
    if (found !== sum) {
      throw new WrongSum(`${address}
has the SHA-256 ${found},
but ${sum} was expected. It was deleted and not unpacked.`)
    }
    await runQuietly('tar', ['-xf', archive, '--strip-components=1', '-C', folder], { log })
  } finally {
    rmSync(archive, { force: true })
  }
}
