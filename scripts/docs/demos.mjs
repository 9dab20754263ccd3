// A plugin of TypeDoc. Links of the documents to demos lead to the demos' pages beside the documentation; TypeDoc
// would copy the sources of these pages instead.

/** Stands for the site's root until a page is written, which knows how deep it is. */
export const SITE = 'https://site.invalid/'

/** A link of a document to a demo: `../www/chat/index.html`. */
const DEMO = /^(?:\.\.\/)?www\/([\w-]+)\/index\.html$/

export const load = app => {
  app.converter.on('resolveBegin', ({ project }) => {
    const documents = Object.values(project.reflections).map(({ content }) => content).filter(Array.isArray)
    for (const part of [project.readme, ...documents].flat()) {
      const [, name] = (part?.kind === 'relative-link' && DEMO.exec(part.text)) || []
      if (!name) continue
      part.kind = 'text'
      part.text = `${SITE}${name}/`
      delete part.target
    }
  })
  app.renderer.on('endPage', page => {
    const depth = page.url.split('/').length
    page.contents = page.contents?.replaceAll(SITE, '../'.repeat(depth))
  })
}
