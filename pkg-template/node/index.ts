// The package where there is no browser: in Node, Deno and Bun.
import './here.js'

export * from '../index.js'
