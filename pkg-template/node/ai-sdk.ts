// The entry for the AI SDK where there is no browser.
import './here.js'

export * from '../ai-sdk.js'
