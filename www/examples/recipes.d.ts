// The module that build/recipes.ts makes.
declare module 'virtual:recipes' {
  import type { BitNet } from 'tritloom'

  /** The values that a recipe's code names. */
  interface Surroundings {
    model: BitNet
    show(line: string | number): void
    signal: AbortSignal
  }

  export const recipes: readonly {
    title: string
    about: string
    code: string
    load(): Promise<{ run(surroundings: Surroundings): Promise<void> }>
  }[]
}
