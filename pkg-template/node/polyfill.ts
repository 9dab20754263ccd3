// Installs the browsers' interfaces where there is no browser.
import './here.js'

export * from '../built-in-ai/polyfill.js'
