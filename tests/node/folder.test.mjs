// The folder of stored models without a model: its mutex, its locks and its records.
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createHash } from 'node:crypto'
import { inRoot } from '../../scripts/paths.mjs'
import { BitNet, CACHE, failsWith, mounted, noMounts, noted, run, script, server } from './support.mjs'

const { enter } = await import(inRoot('pkg', 'node', 'mutex.js'))
const { locks } = await import(inRoot('pkg', 'node', 'locks.js'))
const { hasEnded, ownerOf } = await import(inRoot('pkg', 'node', 'owner.js'))
const { Records } = await import(inRoot('pkg', 'node', 'records.js'))

const { scripted } = await server()
const LOCKS = join(CACHE, 'locks')
const keyOf = name => createHash('sha256').update(name).digest('hex').slice(0, 16)
const [PLACE, , BEGIN] = ownerOf(0).split('.')
const isLinux = process.platform === 'linux'

/** A process that has ended. */
const ended = Number((await script('console.log(process.pid)')).stdout)

/** Writes the file of a lock as `owner` would. */
const lockOf = (name, owner) => {
  mkdirSync(LOCKS, { recursive: true })
  const path = join(LOCKS, `${keyOf(name)}.exclusive.${owner}.ab`)
  writeFileSync(path, '')
  return path
}

/** Whether a lock is free, and taken for the moment. */
const isFree = name => locks.request(name, { mode: 'exclusive', ifAvailable: true }, lock => lock !== null)

const folderOf = t => {
  const folder = mkdtempSync(join(tmpdir(), 'tritloom-folder-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

test('an owner has ended if its process has, or if another one has its number now', () => {
  assert.equal(hasEnded(`${PLACE}.${ended}.${BEGIN}.0`), true)
  assert.equal(hasEnded(`elsewhere.${ended}.${BEGIN}.0`), undefined)
  // Other systems do not tell when a process has begun.
  assert.equal(hasEnded(ownerOf(7)), isLinux ? false : undefined)
  assert.equal(hasEnded(`${PLACE}.${process.pid}.1.0`), isLinux ? true : undefined)
})

test('exclusive locks exclude all, shared ones only those', async () => {
  await locks.request('a', { mode: 'shared' }, async () => {
    assert.equal(await isFree('a'), false)
    assert.equal(await isFree('b'), true)
    await locks.request('a', { mode: 'shared' }, async () => {
      assert.deepEqual((await locks.query()).held, Array(2).fill({ name: 'a', mode: 'shared' }))
    })
  })
  await locks.request('a', { mode: 'exclusive' }, async () => assert.equal(await isFree('a'), false))
  await assert.rejects(locks.request('a', { mode: 'exclusive' }, () => { throw new Error('the callback') }), /the callback/)
  assert.equal(await isFree('a'), true)
  assert.deepEqual(readdirSync(LOCKS), [])
})

test('locks of what has ended are free, and their files go; other files stay', async () => {
  const old = new Date(Date.now() - 150_000)
  const cases = [
    [ownerOf(7), false], [`${PLACE}.${ended}.${BEGIN}.0`, true], ['elsewhere.1.1.0', false], ['elsewhere.1.1.0', true, old],
    // A program here counts as long as it runs, however long it was stopped.
    ...isLinux ? [[`${PLACE}.${process.pid}.1.0`, true], [ownerOf(7), false, old]] : []
  ]
  for (const [index, [owner, free, time]] of cases.entries()) {
    const path = lockOf(`ends ${index}`, owner)
    if (time) utimesSync(path, time, time)
    assert.equal(await isFree(`ends ${index}`), free, owner)
    assert.equal(existsSync(path), !free, owner)
    rmSync(path, { force: true })
  }
  mkdirSync(join(LOCKS, 'folder'))
  mkdirSync(join(LOCKS, `${keyOf('a')}.exclusive.elsewhere.1.1.0.cd`))
  utimesSync(join(LOCKS, `${keyOf('a')}.exclusive.elsewhere.1.1.0.cd`), old, old)
  assert.equal(await isFree('a'), true)
  rmSync(LOCKS, { recursive: true })
})

test('a wait for a lock ends by its signal', async () => {
  const path = lockOf('waited for', ownerOf(7))
  const stop = new AbortController()
  const waiting = locks.request('waited for', { mode: 'exclusive', signal: stop.signal }, () => {})
  setTimeout(() => stop.abort(), 50)
  await assert.rejects(waiting, { name: 'AbortError' })
  // And by what makes it free.
  const next = locks.request('waited for', { mode: 'exclusive' }, () => 'taken')
  rmSync(path)
  assert.equal(await next, 'taken')
})

test('a load that is aborted does not wait for another program any more', async () => {
  const { url } = await scripted()
  const path = lockOf(`tritloom-load ${url}`, ownerOf(7))
  const said = await script(`
    const stop = new AbortController()
    const onProgress = ({ notes }) => { if (notes.some(({ kind }) => kind === 'waiting')) stop.abort(new Error('enough')) }
    await BitNet.load(${JSON.stringify(url)}, { worker: false, signal: stop.signal, onProgress }).catch(({ message }) => console.log(message))`)
  assert.deepEqual([said.status, said.stdout], [0, 'enough\n'], said.stderr)
  rmSync(path)
})

test('one thread at a time has the mutex', async t => {
  const folder = folderOf(t)
  let inside = 0
  await Promise.all(Array.from({ length: 20 }, async () => {
    const mutex = await enter(folder)
    assert.equal(++inside, 1)
    await new Promise(setImmediate)
    assert.ok(mutex.isHeld())
    inside--
    mutex.leave()
    assert.ok(!mutex.isHeld())
  }))
  assert.deepEqual(readdirSync(folder), [])
})

test('the mutex of a process that has ended is free, but not of one that cannot be seen', async t => {
  const folder = folderOf(t)
  const path = join(folder, 'mutex')
  for (const owner of [`${PLACE}.${ended}.${BEGIN}.0`, ...isLinux ? [`${PLACE}.${process.pid}.1.0`] : []]) {
    writeFileSync(path, owner)
    const begun = performance.now()
    ;(await enter(folder)).leave()
    assert.ok(performance.now() - begun < 2000)
  }
  writeFileSync(path, 'elsewhere.1.1.0')
  let isIn = false
  const entering = enter(folder).then(mutex => {
    isIn = true
    mutex.leave()
  })
  await new Promise(resolve => setTimeout(resolve, 300))
  assert.ok(!isIn)
  rmSync(path)
  await entering
  assert.deepEqual(readdirSync(folder), [])
})

test('a thread that was stopped for long does not write over what others have written', async t => {
  const folder = folderOf(t)
  const records = new Records(folder)
  const late = await records.begin(true)
  late.put('1-1', { id: '1-1' })
  rmSync(join(folder, 'mutex'))
  const other = await records.begin(true)
  assert.throws(() => late.end(), /stopped for long/)
  late.leave()
  other.put('2-2', { id: '2-2' })
  other.end()
  other.leave()
  assert.deepEqual(readdirSync(folder), ['2-2.json'])
})

test('records that the disk does not give are not taken for none', async t => {
  const folder = folderOf(t)
  mkdirSync(join(folder, '1-1.json'))
  writeFileSync(join(folder, '2-2.json'), '{"id":')
  writeFileSync(join(folder, '3-3.json'), '{"id":"4-4"}')
  const reading = await new Records(folder).begin(false)
  assert.throws(() => reading.all(), /EISDIR/)
  assert.throws(() => reading.get('1-1'), /EISDIR/)
  assert.deepEqual(['2-2', '3-3', '5-5'].map(id => reading.get(id)), [undefined, undefined, undefined])
})

test('a transaction that fails has removed nothing', async t => {
  const folder = folderOf(t)
  const old = join(folder, '1-1.json')
  writeFileSync(old, '{"id":"1-1"}')
  mkdirSync(join(folder, '2-2.json.new'))
  const transaction = await new Records(folder).begin(true)
  transaction.remove('1-1')
  transaction.put('2-2', { id: '2-2' })
  transaction.put('3-3', { id: '3-3' })
  assert.throws(() => transaction.end(), /EISDIR/)
  transaction.leave()
  assert.equal(readFileSync(old, 'utf8'), '{"id":"1-1"}')
  assert.deepEqual(readdirSync(folder), ['1-1.json', '2-2.json.new'])
})

test('what was left behind is swept, and nothing else', async t => {
  const folder = folderOf(t)
  const left = ['1-1.json.new', '2-2.json', 'mutex-01234567-89ab-cdef-0123-456789abcdef']
  const kept = ['3-3.json', 'config.json', 'model.json.new', 'mutex-mine']
  for (const name of [...left, ...kept]) writeFileSync(join(folder, name), name === '3-3.json' ? '{"id":"3-3"}' : '{')
  utimesSync(join(folder, left[2]), 1, 1)
  const transaction = await new Records(folder).begin(true)
  transaction.sweep()
  transaction.leave()
  assert.deepEqual(readdirSync(folder).sort(), kept.sort())
})

test('files that are not of the package stay, and models whose records cannot be read', async () => {
  const { url } = await scripted()
  const others = ['model.bytes', 'x-1.bytes', 'config.json', '5.bytes']
  for (const name of others) writeFileSync(join(CACHE, name), '{}')
  await (await noted(url)).model.dispose()
  assert.equal((await BitNet.cache.estimate()).usage, (await BitNet.cache.list())[0].bytes)
  await BitNet.cache.clear()
  assert.deepEqual(readdirSync(CACHE).sort(), [...others, 'locks'].sort())
  for (const name of others) rmSync(join(CACHE, name))
  // Bytes without a record are deleted, but not if the disk does not give the record.
  writeFileSync(join(CACHE, '1-1.bytes'), 'a')
  writeFileSync(join(CACHE, '2-2.bytes'), 'a')
  mkdirSync(join(CACHE, '1-1.json'))
  await assert.rejects(BitNet.cache.list(), failsWith('storage', /EISDIR/))
  const refused = await noted(url)
  await refused.model.dispose()
  assert.match(refused.notes.find(({ kind }) => kind === 'not-stored').why, /EISDIR/)
  assert.ok(existsSync(join(CACHE, '1-1.bytes')) && existsSync(join(CACHE, '2-2.bytes')))
  rmSync(join(CACHE, '1-1.json'), { recursive: true })
  await (await noted(url)).model.dispose()
  assert.ok(!existsSync(join(CACHE, '1-1.bytes')) && !existsSync(join(CACHE, '2-2.bytes')))
  await BitNet.cache.clear()
})

/** A program that enters the mutex and takes a lock several times. */
const entering = `
  const { enter } = await import(${JSON.stringify(inRoot('pkg', 'node', 'mutex.js'))})
  const { locks } = await import(${JSON.stringify(inRoot('pkg', 'node', 'locks.js'))})
  const { Records } = await import(${JSON.stringify(inRoot('pkg', 'node', 'records.js'))})
  const folder = process.env.TRITLOOM_CACHE
  const begun = performance.now()
  const said = []
  for (let n = 0; n < 3; n++) {
    said.push(await enter(folder).then(mutex => (mutex.leave(), 'in'), ({ code }) => code))
    said.push(await locks.request('a', { mode: 'exclusive', ifAvailable: true }, lock => lock ? 'lock' : 'none').catch(({ code }) => code))
  }
  const transaction = await new Records(folder).begin(true)
  transaction.put('1-1', { id: '1-1' })
  try { transaction.end() } catch ({ message }) { said.push(message.split(':')[0]) }
  transaction.leave()
  console.log(said.join(' '), performance.now() - begun < 5000 ? 'soon' : 'late')`

test('a full disk costs no time, and leaves nothing behind', { skip: noMounts }, async t => {
  const folder = folderOf(t)
  // Not a byte is free, but files without bytes can be made.
  const { status, stdout, stderr } = await mounted(`
    mount -t tmpfs -o size=64k none ${folder}; mkdir ${folder}/locks; cat /dev/zero > ${folder}/fill 2>/dev/null
    "$0" --input-type=module -e "$1"; ls ${folder} ${folder}/locks`, entering, { TRITLOOM_CACHE: folder })
  assert.equal(status, 0, stderr)
  const [said, ...files] = stdout.trim().split('\n')
  assert.equal(said, 'in lock in lock in lock QuotaExceededError soon')
  assert.deepEqual(files.filter(name => /mutex|\.json|exclusive/.test(name)), [])
})

test('files may not have a single byte: that costs no time, and is no full disk', { skip: process.platform === 'win32' }, async t => {
  const folder = folderOf(t)
  const { status, stdout, stderr } = await run(
    'bash', ['-c', 'ulimit -f 0; exec "$0" --input-type=module -e "$1"', process.execPath, `${entering}`],
    { env: { TRITLOOM_CACHE: folder } })
  assert.equal(status, 0, stderr)
  assert.equal(stdout, 'in lock in lock in lock EFBIG soon\n')
  assert.deepEqual([...readdirSync(folder), ...readdirSync(join(folder, 'locks'))], ['locks'])
})

test('the mutex of a folder that cannot be written is not waited for', { skip: noMounts }, async t => {
  const folder = folderOf(t)
  mkdirSync(join(folder, 'locks'))
  writeFileSync(join(folder, 'mutex'), `${PLACE}.${ended}.${BEGIN}.0`)
  const { status, stdout, stderr } = await mounted(`
    mount --bind ${folder} ${folder} && mount -o remount,ro,bind ${folder}; exec "$0" --input-type=module -e "$1"`,
  entering, { TRITLOOM_CACHE: folder })
  assert.equal(status, 0, stderr)
  assert.equal(stdout, 'EROFS EROFS EROFS EROFS EROFS EROFS EROFS soon\n')
})

test('without a folder, nothing is stored and the estimate is zero', async () => {
  const file = join(CACHE, 'file')
  writeFileSync(file, '')
  process.env.TRITLOOM_CACHE = join(file, 'folder')
  try {
    assert.deepEqual(await BitNet.cache.estimate(), { usage: 0, quota: 0 })
  } finally {
    process.env.TRITLOOM_CACHE = CACHE
  }
})
