// The tools: functions of the page, described for a model.
import type { RunnableTool } from 'tritloom'
import { CITIES, convert, describeConversion, timeIn, UNIT_NAMES } from './facts.ts'
import { describeTheme, THEMES, withItem, type History, type Theme } from './state.ts'

/** The names of the tools, for the reader's choice. */
export const TOOL_NAMES = ['add_item', 'tick_item', 'convert', 'show_time', 'set_theme'] as const

export type ToolName = (typeof TOOL_NAMES)[number]

/** Parameters that all have to be given. */
const all = (properties: Record<string, object>) => ({
  type: 'object', properties, required: Object.keys(properties), additionalProperties: false
})

/**
 * The tools as the page is now: a model can only tick what is on the list. Each gives a sentence for
 * the model and for the reader, or throws one.
 */
export function pageTools(history: History): Record<ToolName, RunnableTool> {
  const names = [...new Set(history.now.items.map(({ name }) => name))]
  return {
    add_item: {
      description: 'Puts an item on the shopping list',
      parameters: all({
        name: { type: 'string', minLength: 1, maxLength: 20 }, count: { type: 'integer', minimum: 1, maximum: 99 }
      }),
      execute({ name, count }: { name: string, count: number }) {
        const items = withItem(history.now.items, name.trim() || name, count)
        history.change(`Put ${count} ${name} on the list.`, { items })
        return `The list has ${items.map(item => `${item.count} ${item.name}`).join(', ')}.`
      }
    },
    tick_item: {
      description: 'Ticks an item of the shopping list',
      parameters: all({ item: names.length > 0 ? { enum: names } : { type: 'string', maxLength: 20 } }),
      execute({ item }: { item: string }) {
        const { items } = history.now
        if (!items.some(({ name }) => name === item)) throw new Error(`There is no ${item} on the list.`)
        const ticked = items.map(entry => (entry.name === item ? { ...entry, isDone: true } : entry))
        history.change(`Ticked ${item}.`, { items: ticked })
        return `${item} is ticked.`
      }
    },
    convert: {
      description: 'Converts an amount to another unit',
      parameters: all({
        amount: { type: 'number', minimum: -100_000, maximum: 100_000 }, from: { enum: UNIT_NAMES }, to: { enum: UNIT_NAMES }
      }),
      execute({ amount, from, to }: { amount: number, from: string, to: string }) {
        convert(amount, from, to) // Throws before anything changes.
        const result = describeConversion(amount, from, to)
        history.change(result, { conversion: { amount, from, to } })
        return result
      }
    },
    show_time: {
      description: 'Tells the time in a city',
      parameters: all({ city: { enum: CITIES } }),
      execute({ city }: { city: string }) {
        history.change(`The clock shows ${city}.`, { city })
        return `It is ${timeIn(city)} in ${city}.`
      }
    },
    set_theme: {
      description: 'Sets the colours of the page',
      parameters: all({ theme: { enum: THEMES } }),
      execute({ theme }: { theme: Theme }) {
        history.change(describeTheme(theme), { theme })
        return describeTheme(theme)
      }
    }
  }
}
