// The setup on machines that lack something: a PATH of stand-ins, each a few lines of shell that
// note how they were called.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { inRoot, lockedVersion } from '../../scripts/paths.mjs'

const isRoot = process.getuid?.() === 0

const PRESENT = {
  cc: '',
  cargo: 'echo cargo 1.99.0',
  rustc: 'echo rustc 1.99.0',
  rustup: '',
  'wasm-pack': 'echo wasm-pack 0.15.1',
  'wasm-bindgen': `echo wasm-bindgen ${lockedVersion('wasm-bindgen')}`
}

/** rustc that has the target only once the file `when` is there, or the environment says so. */
const rustcWithTarget = condition => `case "$*" in *--target*) ${condition} ;; *) echo rustc 1.99.0 ;; esac`

let directory

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'ternlight-setup-'))
  mkdirSync(join(directory, 'bin'))
})

afterEach(() => rmSync(directory, { recursive: true }))

const setUpWith = (programs, ...args) => {
  for (const [name, body] of Object.entries(programs)) {
    if (body === null) continue
    const path = join(directory, 'bin', name)
    writeFileSync(path, `#!/bin/sh\necho "${name} $*" >> "${directory}/calls"\n${body}\n`)
    chmodSync(path, 0o755)
  }
  const { status, stdout, stderr } = spawnSync(process.execPath, [inRoot('scripts', 'setup.mjs'), ...args], {
    env: { PATH: join(directory, 'bin'), HOME: directory, CARGO_HOME: join(directory, 'cargo') },
    encoding: 'utf8'
  })
  const calls = existsSync(join(directory, 'calls')) ? readFileSync(join(directory, 'calls'), 'utf8').split('\n') : []
  return { status, stdout, stderr, calls }
}

test('where everything is there, it is one timed line a step and nothing is installed', () => {
  const { status, stdout, stderr, calls } = setUpWith(PRESENT)
  assert.equal(status, 0, stderr)
  const lines = stdout.trim().split('\n')
  assert.equal(lines[0], 'Setup')
  assert.equal(lines.length, 8)
  for (const line of lines.slice(1)) assert.match(line, /\(\d+\.\d\d s\)$/)
  assert.deepEqual(calls.filter(call => /install|add|link|update/.test(call)), [])
})

test('without Rust it says how to get it', () => {
  const { status, stderr } = setUpWith({ ...PRESENT, cargo: null, rustc: null, rustup: null })
  assert.equal(status, 1)
  assert.match(stderr, /Rust: install it with\n {2}curl .*sh\.rustup\.rs/)
  assert.doesNotMatch(stderr, /at file:/)
})

test('a compiler that is too old is updated, and the person told where that changes nothing', () => {
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

test('where rustup cannot download, Debian\'s compiler is installed and linked, after rustup was tried', { skip: !isRoot }, () => {
  const { status, stderr, stdout, calls } = setUpWith({
    ...PRESENT,
    rustc: rustcWithTarget(`test "$RUSTUP_TOOLCHAIN" = distro -a -e "${directory}/linked"`),
    rustup: `case "$*" in 'target add'*) exit 1 ;; 'toolchain link'*) : > "${directory}/linked" ;; esac`,
    'apt-get': '',
    'rust-lld': ''
  })
  assert.equal(status, 0, stderr)
  assert.match(stdout, /Debian's Rust, for this target alone/)
  const order = ['rustup target add', 'apt-get update', 'apt-get install', 'rustup toolchain link distro /usr']
  const at = order.map(start => calls.findIndex(call => call.startsWith(start)))
  assert.deepEqual(at, [...at].sort((a, b) => a - b))
  assert.ok(!at.includes(-1), calls.join('\n'))
})

test('where neither way works, the reason and the command are told', () => {
  const { status, stderr } = setUpWith({
    ...PRESENT,
    rustc: rustcWithTarget('exit 1'),
    rustup: "case \"$*\" in 'target add'*) echo could not download >&2; exit 1 ;; esac"
  })
  assert.equal(status, 1)
  assert.match(stderr, /could not download/)
  assert.match(stderr, /WebAssembly target: run `rustup target add wasm32-unknown-unknown`/)
})

test('wasm-bindgen of another version is left alone; the right one is installed beside it', () => {
  const version = lockedVersion('wasm-bindgen')
  const root = join(directory, 'cargo', `wasm-bindgen-${version}`)
  const { status, stderr, calls } = setUpWith({
    ...PRESENT,
    'wasm-bindgen': 'echo wasm-bindgen 0.2.1',
    // The lock names a version that this registry lacks: only the second try works.
    cargo: `case "$*" in
      *--locked*) exit 101 ;;
      install*) /bin/mkdir -p "${root}/bin" && : > "${root}/bin/wasm-bindgen" && /bin/chmod +x "${root}/bin/wasm-bindgen" ;;
      *) echo cargo 1.99.0 ;;
    esac`
  })
  assert.equal(status, 0, stderr)
  assert.deepEqual(calls.filter(call => call.startsWith('cargo install')), [
    `cargo install --locked wasm-bindgen-cli --version =${version} --root ${root}`,
    `cargo install wasm-bindgen-cli --version =${version} --root ${root}`
  ])
})

test('a missing browser comes from apt-get', { skip: !isRoot }, () => {
  const chromium = join(directory, 'bin', 'chromium')
  const { status, stdout, stderr, calls } = setUpWith(
    { ...PRESENT, 'apt-get': `case "$*" in *chromium*) : > "${chromium}"; /bin/chmod +x "${chromium}" ;; esac` },
    '--tests'
  )
  assert.equal(status, 0, stderr)
  assert.match(stdout, new RegExp(`Chromium .*installed: ${chromium}`))
  assert.deepEqual(calls.filter(call => call.startsWith('apt-get')), [
    'apt-get update',
    'apt-get install -y --no-install-recommends chromium'
  ])
})

test('where no browser can be had, the ways to get one are told', () => {
  const { status, stderr } = setUpWith({ ...PRESENT, 'apt-get': 'exit 100' }, '--tests')
  assert.equal(status, 1)
  assert.match(stderr, /Chromium: run `sudo apt-get .*chromium` or `npx playwright install chromium`/)
})
