// The small model that comes with the site.

/** The model's address. Every demo is in a folder of its own in the site's root. */
export const BUNDLED_MODEL = new URL('../models/tiny-stories.gguf', document.baseURI).href
