// The widget's words. Sentences about a load and about errors are those of `tritloom/words`, in English.

/** The labels that a page can replace by slots of these names. */
export interface Slots {
  title: string
  'sum-up': string
  stop: string
  download: string
  decline: string
  own: string
  'own-label': string
  'own-button': string
  copy: string
}

export interface Labels {
  slots: Slots
  placeholder: string
  copied: string
  /** Where the browser does not let the page copy: the text is selected. */
  selected: string
  reading: string
  readingPart(part: number, parts: number): string
  stopped: string
  /** Before a question about a download: of the browser's own model, of ours, and its size. */
  theirModel: string
  ourModel: string
  size(bytes: string | undefined): string
  /** The GPU was lost; the model is being restored. */
  lost: string
  restoring: string
  empty: string
  written(tokens: string, rate: string, isCut: boolean): string
  byBrowser: string
}

export const ENGLISH: Labels = {
  slots: {
    title: 'TL;DR',
    'sum-up': 'Sum it up',
    stop: 'Stop',
    download: 'Download',
    decline: 'Not now',
    own: 'Sum up your own text',
    'own-label': 'Your text',
    'own-button': 'Sum up this text',
    copy: 'Copy'
  },
  placeholder: 'Paste a text of any length',
  copied: 'Copied.',
  selected: 'The browser does not let this page copy. The text is selected: copy it yourself.',
  reading: 'Reading …',
  readingPart: (part, parts) => `Reading: part ${part} of ${parts} …`,
  stopped: 'Stopped.',
  theirModel: 'Your browser has a model for this, and has to download it first. How large it is, it does not say.',
  ourModel: 'The summary is written on your device, by a model that has to be downloaded.',
  size: bytes => bytes === undefined ? 'How large it is, is not known.' : `It has ${bytes}.`,
  lost: 'The GPU was lost. The next summary brings the model back.',
  restoring: 'Bringing the model back …',
  empty: 'There is no text to sum up.',
  written: (tokens, rate, isCut) => `${tokens} tokens, ${rate}${isCut ? ', cut off' : ''}`,
  byBrowser: 'By the browser’s own model'
}
