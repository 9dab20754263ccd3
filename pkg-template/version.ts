/** The package's version, as `Cargo.toml` has it. */
export const version = '0.1.0'
