// The browsers' interfaces where there is no browser.
import './here.js'

export * from '../built-in-ai.js'
