// Names the thread that holds a lock, and finds out whether its program still runs.
import { createHash } from 'node:crypto'
import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'

/** The code of a system's error. */
export const codeOf = (error: unknown): string | undefined => (error as { code?: string } | undefined)?.code

function unlessRefused<T>(look: () => T): T | undefined {
  try {
    return look()
  } catch {
    return undefined
  }
}

/**
 * Where the numbers of processes mean the same: a machine from its start to its end, or one container of it.
 * Containers may have the same host name.
 */
function placeOfProcesses(): string {
  const boot = unlessRefused(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8'))
  const container = unlessRefused(() => readlinkSync('/proc/self/ns/pid'))
  const place = boot && container ? boot + container : hostname()
  return createHash('sha256').update(place).digest('hex').slice(0, 12)
}

/** When a process has begun, because its number may be used again; `-` where the system does not tell. */
function beginOf(pid: number): string {
  const fields = unlessRefused(() => readFileSync(`/proc/${pid}/stat`, 'utf8'))
  // The second field is the program's name in parentheses, which may hold anything.
  return fields?.slice(fields.lastIndexOf(')') + 2).split(' ')[19] ?? '-'
}

function runs(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return codeOf(error) !== 'ESRCH'
  }
}

const PLACE = placeOfProcesses()
const PROCESS = `${PLACE}.${process.pid}.${beginOf(process.pid)}`

/** The name of a thread of this process as an owner: letters, digits, `-` and dots. */
export const ownerOf = (thread: number): string => `${PROCESS}.${thread}`

/** Whether the process of an owner has ended; `undefined` if that cannot be told from here. */
export function hasEnded(owner: string): boolean | undefined {
  const [place, pid, begin] = owner.split('.')
  if (place !== PLACE) return undefined
  if (!runs(Number(pid))) return true
  const begun = beginOf(Number(pid))
  return begun === '-' ? undefined : begun !== begin
}
