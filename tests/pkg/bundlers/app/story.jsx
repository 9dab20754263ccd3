'use client'
// Imported on the server too, which renders it without WebGPU.
import { BitNet } from 'tritloom'
import { useEffect } from 'react'
import { tell } from '../tell.js'

export function Story() {
  useEffect(() => void tell(BitNet), [])
  return <p>The server has rendered this.</p>
}
