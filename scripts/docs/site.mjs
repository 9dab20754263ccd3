// A plugin of TypeDoc, for what makes its pages one site with the demos.

/** Stands for the site's root until a page is written, which knows how deep it is. */
export const SITE = 'https://site.invalid/'

/** A link of a document to a demo: `../www/chat/index.html`. */
const DEMO = /^(?:\.\.\/)?www\/([\w-]+)\/index\.html$/

/** Runs before TypeDoc's own listeners, which make the navigation and the search. */
const FIRST = 1000

const documentsOf = project => Object.values(project.reflections).filter(({ content }) => Array.isArray(content))

/** Links of the documents to demos lead to the demos' pages. TypeDoc would copy the sources of these pages instead. */
const linkDemos = ({ project }) => {
  for (const part of [project.readme, ...documentsOf(project).map(({ content }) => content)].flat()) {
    const [, name] = (part?.kind === 'relative-link' && DEMO.exec(part.text)) || []
    if (!name) continue
    part.kind = 'text'
    part.text = `${SITE}${name}/`
    delete part.target
  }
}

/** Documents have the names of their headings. The addresses, which are made before, keep the names of the files. */
const nameDocuments = ({ project }) => {
  for (const document of documentsOf(project)) document.name = /^# (.+)$/m.exec(document.content[0].text)[1]
}

/** The demos are found from any page, screen readers find the text, and wide tables scroll, also by the keyboard. */
const finish = page => {
  const depth = page.url.split('/').length
  page.contents = page.contents
    ?.replaceAll(SITE, '../'.repeat(depth))
    .replace('<div class="col-content">', '<div class="col-content" role="main">')
    .replaceAll('<table>', '<div class="table" tabindex="0" role="group" aria-label="Table"><table>')
    .replaceAll('</table>', '</table></div>')
    .replaceAll('<th></th>', '<td></td>')
}

export const load = app => {
  app.converter.on('resolveBegin', linkDemos)
  app.renderer.on('beginRender', nameDocuments, FIRST)
  app.renderer.on('endPage', finish)
}
