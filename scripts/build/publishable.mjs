// Whether the site and the package may be published from a checkout.
import { obstacles } from './package.mjs'

/**
 * Why not; empty if they may. `place` is the address of the repository whose job publishes, and `tag` that of a
 * release, or undefined for the site; `address` and `version` are those of Cargo.toml.
 */
export const refusals = ({ address, version, place, tag }) => {
  // A build of the package notes what is missing, and the package then refuses itself.
  const missing = obstacles(address, true)
  return [
    ...missing,
    missing.length === 0 && place !== undefined && place !== address.repository &&
      `this is ${place}, and \`repository\` in Cargo.toml is ${address.repository}`,
    tag !== undefined && tag !== `v${version}` && `the tag is ${tag}, and the version in Cargo.toml is ${version}`
  ].filter(Boolean)
}
