// A blind comparison of two models' answers, as answers.mjs writes them.
//
//   node scripts/train/judge.mjs sheet old.json new.json sheet.md key.json
//   node scripts/train/judge.mjs count points.json key.json
//   node scripts/train/judge.mjs record old.json new.json points.json key.json record.json
//
// The sheet has the prompts and both answers, X and Y in random order; the key says which is which, and is not for the
// judge. The judge writes points.json: {"1": {"X": 2, "Y": 0}, …}, with 0, 1 or 2 points for each answer.
// The record has all answers with their points, for the model's card.
import { randomInt } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { inRoot } from '../paths.mjs'
import { count, record, sheet, verdict } from './judging.mjs'

const read = path => JSON.parse(readFileSync(path, 'utf8'))
const prompts = read(inRoot('models', 'prompts.json'))
const [command, ...paths] = process.argv.slice(2)
if (command === 'sheet' && paths.length === 4) {
  const made = sheet(prompts, read(paths[0]), read(paths[1]), () => randomInt(2) === 1)
  writeFileSync(paths[2], made.text)
  writeFileSync(paths[3], `${JSON.stringify(made.key)}\n`)
} else if (command === 'count' && paths.length === 2) {
  const rows = count(prompts, read(paths[0]), read(paths[1]))
  console.table(rows)
  for (const { what, holds } of verdict(rows)) console.log(`${holds ? 'yes' : 'no '}  ${what}`)
} else if (command === 'record' && paths.length === 5) {
  const [old, other, points, key] = paths.slice(0, 4).map(read)
  writeFileSync(paths[4], `${JSON.stringify(record(prompts, old, other, points, key), null, 1)}\n`)
} else {
  console.error('judge.mjs sheet old.json new.json sheet.md key.json | judge.mjs count points.json key.json')
  console.error('judge.mjs record old.json new.json points.json key.json record.json')
  process.exitCode = 2
}
