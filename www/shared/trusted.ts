// The page's policy of Trusted Types, for hosts that require them. The standard types do not know these yet.

export interface Policy {
  createHTML(html: string): string
  createScriptURL(url: string): string
}

interface TrustedTypes {
  createPolicy(name: string, rules: Policy): Policy
}

const { trustedTypes } = globalThis as { trustedTypes?: TrustedTypes }

/** Undefined where the browser has no such policies. It passes on texts: HTML is sanitised before it is shown. */
export const policy = trustedTypes?.createPolicy('page', { createHTML: html => html, createScriptURL: url => url })
