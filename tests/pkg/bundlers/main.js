// An app for every bundler. What it finds out, it writes into the page.
import { BitNet } from 'tritloom'
import { tell } from './tell.js'

tell(BitNet)
