// The setup on machines that lack something. PATH has only stand-ins: a few lines of shell each,
// which note how they were called.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { inRoot, lockedVersion, readText } from '../../scripts/paths.mjs'
import { find } from '../../scripts/process.mjs'
import { SUMS, unpack, WrongSum } from '../../scripts/setup/download.mjs'
import { WASM_PACK } from '../../scripts/setup/wasm-tools.mjs'
import { findWebKit, webKit } from '../../scripts/setup/webkit.mjs'

const isLinux = process.platform === 'linux'
const isRoot = process.getuid?.() === 0
const hasCurl = find('curl') !== null

const PRESENT = {
  cc: '',
  cargo: 'echo cargo 1.99.0',
  rustc: 'case "$*" in *sysroot*) echo "$HOME" ;; *) echo rustc 1.99.0 ;; esac',
  rustup: '',
  'wasm-pack': 'echo wasm-pack 0.15.0',
  'wasm-bindgen': `echo wasm-bindgen ${lockedVersion('wasm-bindgen')}`
}

/** A file of the sources of Rust's library, in the folder of its compiler. */
const SOURCES = ['lib', 'rustlib', 'src', 'rust', 'library', 'Cargo.lock']

/** rustc that has the target only where `condition`, a shell command, succeeds. */
const rustcWithTarget = condition =>
  `case "$*" in *--target*) ${condition} ;; *) echo rustc 1.99.0 ;; esac`

/** Shell that writes a program which prints its version, as an installer does. */
const program = (folder, name, version) =>
  `/bin/mkdir -p "${folder}" && printf '#!/bin/sh\\necho ${name} ${version}\\n' > "${folder}/${name}" && /bin/chmod +x "${folder}/${name}"`

/** Shell that goes on once a file is in the test's directory, or fails after ten seconds. */
const waitFor = name =>
  `n=0; until test -e "${directory}/${name}"; do n=$((n + 1)); test $n -lt 100 || exit 3; /bin/sleep 0.1; done`

let directory

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'tritloom-setup-'))
  mkdirSync(join(directory, 'bin'))
  const sources = join(directory, ...SOURCES)
  mkdirSync(dirname(sources), { recursive: true })
  writeFileSync(sources, '')
})

afterEach(() => rmSync(directory, { recursive: true }))

const setUpWith = (programs, ...args) => {
  for (const [name, body] of Object.entries(programs)) {
    if (body === null) continue
    const path = join(directory, 'bin', name)
    writeFileSync(path, `#!/bin/sh\necho "${name} $*" >> "${directory}/calls"\n${body}\n`)
    chmodSync(path, 0o755)
  }
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [inRoot('scripts', 'setup.mjs'), ...args],
    {
      env: { PATH: join(directory, 'bin'), HOME: directory, CARGO_HOME: join(directory, 'cargo') },
      encoding: 'utf8'
    }
  )
  const calls = existsSync(join(directory, 'calls'))
    ? readFileSync(join(directory, 'calls'), 'utf8').split('\n')
    : []
  return { status, stdout, stderr, calls }
}

test('where nothing is missing, it prints one timed line a step and installs nothing', () => {
  const { status, stdout, stderr, calls } = setUpWith(PRESENT)
  assert.equal(status, 0, stderr)
  const lines = stdout.trim().split('\n')
  assert.equal(lines[0], 'Setup')
  assert.equal(lines.length, 9)
  for (const line of lines.slice(1)) assert.match(line, /\(\d+\.\d\d s\)$/)
  assert.deepEqual(
    calls.filter(call => /install|add|link|update/.test(call)),
    []
  )
})

test('without Rust it says how to get it', () => {
  const { status, stderr } = setUpWith({ ...PRESENT, cargo: null, rustc: null, rustup: null })
  assert.equal(status, 1)
  assert.match(stderr, /Rust: install it with\n {2}curl .*sh\.rustup\.rs/)
  assert.doesNotMatch(stderr, /at file:/)
})

test('a compiler that is too old is updated; where that changes nothing, the message says so', () => {
  const { status, stderr, calls } = setUpWith({ ...PRESENT, rustc: 'echo rustc 1.80.0' })
  assert.equal(status, 1)
  assert.ok(calls.some(call => call.startsWith('rustup update stable')))
  assert.match(stderr, /this is 1\.80\.0, and 1\.\d+ or newer is needed/)
})

test('a missing target comes from rustup', () => {
  const { status, stderr, calls } = setUpWith({
    ...PRESENT,
    rustc: rustcWithTarget(`test -e "${directory}/added"`),
    rustup: `case "$*" in 'target add'*) : > "${directory}/added" ;; esac`
  })
  assert.equal(status, 0, stderr)
  assert.ok(calls.includes('rustup target add wasm32-unknown-unknown'))
})

test(
  "where rustup cannot download, Debian's compiler is installed and linked",
  { skip: !isRoot },
  () => {
    const { status, stderr, stdout, calls } = setUpWith({
      ...PRESENT,
      rustc: rustcWithTarget(`test "$RUSTUP_TOOLCHAIN" = distro -a -e "${directory}/linked"`),
      rustup: `case "$*" in 'target add'*) exit 1 ;; 'toolchain link'*) : > "${directory}/linked" ;; esac`,
      'apt-get': '',
      'rust-lld': ''
    })
    assert.equal(status, 0, stderr)
    assert.match(stdout, /Debian's Rust, for this target alone/)
    const order = [
      'rustup target add',
      'apt-get update',
      'apt-get install',
      'rustup toolchain link distro /usr'
    ]
    const at = order.map(start => calls.findIndex(call => call.startsWith(start)))
    assert.deepEqual(
      at,
      [...at].sort((a, b) => a - b)
    )
    assert.ok(!at.includes(-1), calls.join('\n'))
  }
)

test("without the sources of Rust's library it says what the package lacks, and goes on", () => {
  rmSync(join(directory, ...SOURCES))
  const { status, stdout, calls } = setUpWith(PRESENT)
  assert.equal(status, 0)
  assert.ok(calls.includes('rustup component add rust-src'))
  assert.match(stdout, /Rust's sources: run `rustup component add rust-src`, and .*\.\nUntil then the package has no modules with threads\./)
})

test('where neither way works, it prints the reason and the command', () => {
  const { status, stderr } = setUpWith({
    ...PRESENT,
    rustc: rustcWithTarget('exit 1'),
    rustup: 'case "$*" in \'target add\'*) echo could not download >&2; exit 1 ;; esac'
  })
  assert.equal(status, 1)
  assert.match(stderr, /could not download/)
  assert.match(stderr, /WebAssembly target: run `rustup target add wasm32-unknown-unknown`/)
})

test('an archive with the recorded sum is unpacked, and deleted', { skip: !hasCurl }, async () => {
  const inside = join(directory, 'tool-1.0')
  mkdirSync(inside)
  writeFileSync(join(inside, 'tool'), 'a program')
  const archive = join(directory, 'tool-1.0.tar.gz')
  spawnSync('tar', ['-czf', archive, '-C', directory, 'tool-1.0'])
  const sum = createHash('sha256').update(readFileSync(archive)).digest('hex')
  const to = join(directory, 'to')
  await unpack(pathToFileURL(archive).href, to, { sum })
  assert.deepEqual(readdirSync(to), ['tool'])
  assert.equal(readFileSync(join(to, 'tool'), 'utf8'), 'a program')

  const other = join(directory, 'other')
  await assert.rejects(
    unpack(pathToFileURL(archive).href, other, { sum: 'f'.repeat(64) }),
    error => error instanceof WrongSum && error.message.includes(sum)
  )
  assert.deepEqual(readdirSync(other), [])
})

test('each recorded sum is that of a version in use', () => {
  const firefox = readText('scripts/setup/firefox.mjs')
  for (const [name, sum] of Object.entries(SUMS)) {
    assert.match(sum, /^[0-9a-f]{64}$/, name)
    assert.ok(name.startsWith(`wasm-pack-v${WASM_PACK}-`) || firefox.includes(`/${name}'`), name)
  }
})

test('an archive with another sum is refused: the setup ends, and nothing of it runs', () => {
  const folder = join(directory, 'cargo', `wasm-pack-${WASM_PACK}`)
  const { status, stderr, calls } = setUpWith({
    ...PRESENT,
    'wasm-pack': 'exit 1',
    curl: `for last; do :; done; echo other > "${folder}/bin/\${last##*/}"`,
    tar: program(join(folder, 'bin'), 'wasm-pack', WASM_PACK)
  })
  if (!calls.some(call => call.startsWith('curl'))) return // No archive for this machine.
  assert.equal(status, 1)
  assert.match(stderr, /wasm-pack-v\S+\nhas the SHA-256 [0-9a-f]{64},\nbut [0-9a-f]{64} was expected/)
  assert.match(stderr, /wasm-pack: run `cargo install wasm-pack --version =/)
  assert.deepEqual(calls.filter(call => /^tar|^cargo install/.test(call)), [])
  assert.deepEqual(readdirSync(join(folder, 'bin')), [])
})

test('wasm-bindgen of another version stays, and the right one gets a folder of its own', () => {
  const version = lockedVersion('wasm-bindgen')
  const bin = join(directory, 'cargo', `wasm-bindgen-${version}`, 'bin')
  const { status, stdout, stderr } = setUpWith({
    ...PRESENT,
    'wasm-bindgen': 'echo wasm-bindgen 0.2.1',
    curl: 'exit 6',
    cargo: `case "$*" in install*) ${program(bin, 'wasm-bindgen', version)} ;; *) echo cargo 1.99.0 ;; esac`
  })
  assert.equal(status, 0, stderr)
  assert.match(stdout, new RegExp(`wasm-bindgen .*installed: ${version.replaceAll('.', '\\.')} `))
})

test('where nothing can be downloaded, cargo compiles both tools at the same time', () => {
  const version = lockedVersion('wasm-bindgen')
  const folder = join(directory, 'cargo', `wasm-bindgen-${version}`)
  const packFolder = join(directory, 'cargo', `wasm-pack-${WASM_PACK}`)
  const { status, stdout, stderr, calls } = setUpWith({
    ...PRESENT,
    'wasm-pack': 'exit 1',
    'wasm-bindgen': 'exit 1',
    curl: 'exit 6',
    // The lock names a version that this registry lacks: only the second try works. Each install
    // waits until the other has begun.
    cargo: `case "$*" in
      *--locked*) exit 101 ;;
      install*wasm-bindgen-cli*) : > "${directory}/one"; ${waitFor('two')}; ${program(join(folder, 'bin'), 'wasm-bindgen', version)} ;;
      install*wasm-pack*) : > "${directory}/two"; ${waitFor('one')}; ${program(join(packFolder, 'bin'), 'wasm-pack', '0.15.0')} ;;
      *) echo cargo 1.99.0 ;;
    esac`
  })
  assert.equal(status, 0, stderr)
  assert.match(stdout, /installing at the same time: wasm-pack, wasm-bindgen\n/)
  assert.match(stdout, /\n {2}wasm-pack +installed: 0\.15\.0 {2}\(/)
  const of = crate => calls.filter(call => call.startsWith('cargo install') && call.includes(crate))
  const options = `wasm-bindgen-cli --bin wasm-bindgen --no-default-features --version =${version} --root ${folder}`
  assert.deepEqual(of('wasm-bindgen-cli'), [
    `cargo install --profile dev --locked ${options}`,
    `cargo install --profile dev ${options}`
  ])
  assert.deepEqual(of('wasm-pack'), [
    `cargo install --profile dev --locked wasm-pack --version =0.15.0 --root ${packFolder}`,
    `cargo install --profile dev wasm-pack --version =0.15.0 --root ${packFolder}`
  ])
})

test('wasm-bindgen, of which no sums are recorded, is compiled and not downloaded', () => {
  const { calls } = setUpWith({ ...PRESENT, 'wasm-bindgen': 'exit 1', curl: 'exit 6' })
  assert.deepEqual(calls.filter(call => call.startsWith('curl')), [])
  assert.ok(calls.some(call => call.startsWith('cargo install')))
})

test('where neither tool can be had, it says what to run, and both installs have ended', () => {
  const { status, stderr, calls } = setUpWith({
    ...PRESENT,
    'wasm-pack': 'exit 1',
    'wasm-bindgen': 'exit 1',
    curl: 'exit 6',
    cargo:
      'case "$*" in install*) echo no registry here >&2; exit 101 ;; *) echo cargo 1.99.0 ;; esac'
  })
  assert.equal(status, 1)
  assert.match(
    stderr,
    /no registry here\nThe whole output: .*\nwasm-pack: run `cargo install wasm-pack --version =0\.15\.0`/
  )
  assert.equal(calls.filter(call => call.startsWith('cargo install')).length, 4)
})

test('missing browsers come from apt-get', { skip: !isRoot }, () => {
  const chromium = join(directory, 'bin', 'chromium')
  const bin = join(directory, 'bin')
  const { status, stdout, stderr, calls } = setUpWith(
    {
      ...PRESENT,
      'apt-get': `case "$*" in
        *chromium*) : > "${chromium}"; /bin/chmod +x "${chromium}" ;;
        *firefox*) ${program(bin, 'firefox-esr', '153.7.0esr')} ;;
      esac`
    },
    '--tests'
  )
  assert.equal(status, 0, stderr)
  assert.match(stdout, new RegExp(`Chromium .*installed: ${chromium}`))
  assert.match(stdout, new RegExp(`Firefox .*installed: ${bin}/firefox-esr, 153\\.7\\.0`))
  assert.deepEqual(
    calls.filter(call => call.startsWith('apt-get')),
    [
      'apt-get update',
      'apt-get install -y --no-install-recommends chromium',
      'apt-get install -y --no-install-recommends firefox-esr',
      'apt-get install -y --no-install-recommends libwebkit2gtk-4.1-0 xvfb xauth'
    ]
  )
  assert.match(stdout, /Until then the tests in WebKit are skipped/)
})

test('a WebKitGTK tells its version on a screen, and an old one or one without a screen is none', { skip: !isLinux }, () => {
  const bin = join(directory, 'bin')
  const write = (name, body) => {
    writeFileSync(join(bin, name), `#!/bin/sh\n${body}\n`)
    chmodSync(join(bin, name), 0o755)
    return join(bin, name)
  }
  const { PATH, WEBKIT } = process.env
  try {
    Object.assign(process.env, { PATH: bin, WEBKIT: write('MiniBrowser', 'echo "WebKitGTK 2.50.6"') })
    write('Xvfb', '')
    assert.equal(findWebKit(), null)
    write('xvfb-run', 'shift; exec "$@"')
    assert.equal(findWebKit(), join(bin, 'MiniBrowser'))
    assert.equal(webKit.check(), `${join(bin, 'MiniBrowser')}, 2.50.6`)
    write('MiniBrowser', 'echo "WebKitGTK 2.48.9"')
    assert.equal(findWebKit(), null)
  } finally {
    Object.assign(process.env, { PATH, ...(WEBKIT && { WEBKIT }) })
    if (!WEBKIT) delete process.env.WEBKIT
  }
})

test('a Firefox that is too old stays, and one of Mozilla with another sum is refused', () => {
  const folder = join(directory, '.cache', 'tritloom', 'firefox')
  const { status, stdout, stderr, calls } = setUpWith(
    {
      ...PRESENT,
      chromium: '',
      'apt-get': 'exit 100',
      'firefox-esr': 'echo Mozilla Firefox 140.12.0esr',
      curl: `for last; do :; done; echo other > "${folder}/\${last##*/}"`,
      tar: program(folder, 'firefox', '154.0esr')
    },
    '--tests'
  )
  assert.equal(status, 0, stderr)
  assert.match(stdout, /Until then the tests in Firefox are skipped/)
  const address = calls.find(call => call.startsWith('curl'))?.match(/ (https:\S+)$/)[1]
  if (!address) return // No archive for this machine.
  assert.match(address, /^https:\/\/archive\.mozilla\.org\/.*\/firefox-153\.0\.tar\.xz$/)
  assert.match(stdout, /has the SHA-256 [0-9a-f]{64},\nbut [0-9a-f]{64} was expected/)
  assert.deepEqual(readdirSync(folder), [])
})

test('where no Firefox can be had, it says what is skipped, and goes on', () => {
  const { status, stdout, stderr } = setUpWith(
    { ...PRESENT, chromium: '', 'apt-get': 'exit 100', curl: 'exit 6' },
    '--tests'
  )
  assert.equal(status, 0, stderr)
  assert.match(stdout, /Firefox .*missing/)
  assert.match(stdout, /Firefox: run `sudo apt-get .*firefox-esr` or install it/)
  assert.match(stdout, /Until then the tests in Firefox are skipped\.\n {2}Software Vulkan/)
})

test('where no browser can be had, it says how to get one', () => {
  const { status, stderr } = setUpWith({ ...PRESENT, 'apt-get': 'exit 100' }, '--tests')
  assert.equal(status, 1)
  assert.match(
    stderr,
    /Chromium: run `sudo apt-get .*chromium` or `npx playwright install chromium`/
  )
})
