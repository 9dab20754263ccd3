// The AI SDK for pages of tests.
export * from 'ai'
export { z } from 'zod'
