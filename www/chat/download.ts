// Gives the reader a file.

/** Saves a text as a file. Characters that file names cannot have are left out of its name. */
export function saveFile(name: string, text: string) {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob([text]))
  link.download = name.replace(/[\\/:*?"<>|\p{Cc}]+/gu, ' ').trim()
  link.click()
  // The browser reads it after the click.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000)
}
