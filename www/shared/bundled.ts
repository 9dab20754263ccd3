// The small model that comes with the site.

/** The model's address. Every demo is one folder below the site's root. */
export const BUNDLED_MODEL = new URL('../models/tiny-stories.gguf', document.baseURI).href
