// An app that knows the widget from its documentation alone. It sums up the article of the page, and
// writes into the page how that ended.
import 'tritloom/widget'

const widget = document.querySelector('tldr-widget')!
widget.setAttribute('model', new URLSearchParams(location.search).get('model')!)

const tell = (result: string) => { document.body.dataset.result = result }
widget.addEventListener('tldr-done', event => {
  const { summary, stats } = (event as CustomEvent<{ summary: string, stats: { completionTokens: number } }>).detail
  tell(summary && stats.completionTokens > 0 ? 'summed up' : 'no summary')
})
widget.addEventListener('tldr-error', event => {
  const { code, message } = (event as CustomEvent<{ code: string, message: string }>).detail
  tell(`${code}: ${message}`)
})
await widget.summarize()
