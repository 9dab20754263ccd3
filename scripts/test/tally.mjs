// How many tests ran, read from what the test runners print.
import { plain } from '../report.mjs'

const LINES = [
  // libtest, once for each test program
  {
    line: /^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored/,
    counts: ['passed', 'failed', 'skipped']
  },
  // node --test
  { line: /^[#ℹ] pass (\d+)$/, counts: ['passed'] },
  { line: /^[#ℹ] fail (\d+)$/, counts: ['failed'] },
  { line: /^[#ℹ] skipped (\d+)$/, counts: ['skipped'] },
  // Playwright; a flaky test is one that failed at first
  { line: /^ {2}(\d+) passed(?: \(|$)/, counts: ['passed'] },
  { line: /^ {2}(\d+) (?:failed|flaky)$/, counts: ['failed'] },
  { line: /^ {2}(\d+) (?:skipped|did not run)$/, counts: ['skipped'] }
]

/** The sums over everything printed: `{ passed, failed, skipped }`. */
export const tally = printed => {
  const sums = { passed: 0, failed: 0, skipped: 0 }
  for (const text of plain(printed).split('\n')) {
    for (const { line, counts } of LINES) {
      const found = line.exec(text)
      if (found) counts.forEach((count, i) => (sums[count] += Number(found[i + 1])))
    }
  }
  return sums
}

export const total = tallies =>
  tallies.reduce(
    (sum, each) => ({
      passed: sum.passed + each.passed,
      failed: sum.failed + each.failed,
      skipped: sum.skipped + each.skipped
    }),
    { passed: 0, failed: 0, skipped: 0 }
  )
