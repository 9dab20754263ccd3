// An app for every bundler. It writes its results into the page.
import { BitNet } from 'tritloom'
import { tell } from './tell.js'

tell(BitNet)
