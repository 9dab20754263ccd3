// The entry for the weights of a file where there is no browser.
import './here.js'

export * from '../weights.js'
