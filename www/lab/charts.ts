// Charts of lines.
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'

/** Values by name. */
interface Values {
  title: string
  values: (number | null)[]
}

/** Lines over what they have in common. */
export interface Lines {
  x: { title: string, values: number[] }
  series: Values[]
}

/** Colours of lines that can be told apart, also by those who see few colours. The theme has light and dark ones. */
const COLOURS = ['light-dark(#93500a, #f0a94a)', 'light-dark(#0b62a4, #7cb8f2)', 'light-dark(#2c6a2f, #8fd08f)', 'light-dark(#7a2f8f, #d49be6)']

const HEIGHT = 260

/** Steps between the ticks of what is counted. */
const WHOLE = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000]

/** Ends what a box shows. */
const endings = new WeakMap<HTMLElement, () => void>()

/**
 * Draws lines in place of those before, with a gap where a value is no number. The figures are in a table beside them, for
 * those who cannot see them.
 */
export function lines(box: HTMLElement, { x, series }: Lines) {
  endings.get(box)?.()
  box.ariaHidden = 'true'
  const colour = (name: string) => {
    const probe = box.appendChild(document.createElement('span'))
    probe.style.color = name
    const { color } = getComputedStyle(probe)
    probe.remove()
    return color
  }
  const [ink, line] = [colour('var(--ink-soft)'), colour('var(--line)')]
  const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } }
  const width = () => Math.max(240, Math.min(1100, box.clientWidth || 600))
  const plot = new uPlot({
    width: width(),
    height: HEIGHT,
    scales: { x: { time: false } },
    axes: [{ ...axis, label: x.title, incrs: WHOLE }, axis],
    series: [
      { label: x.title },
      ...series.map(({ title }, n) => ({ label: title, stroke: colour(COLOURS[n % COLOURS.length]!), width: 2, points: { show: true } }))
    ]
  }, [x.values, ...series.map(({ values }) => values.map(value => Number.isFinite(value) ? value : null))], box)
  const observer = new ResizeObserver(() => {
    if (box.clientWidth > 0) plot.setSize({ width: width(), height: HEIGHT })
  })
  observer.observe(box)
  // The canvas does not follow the colours of the page by itself.
  const dark = matchMedia('(prefers-color-scheme: dark)')
  const again = () => lines(box, { x, series })
  dark.addEventListener('change', again)
  endings.set(box, () => {
    plot.destroy()
    observer.disconnect()
    dark.removeEventListener('change', again)
  })
}
