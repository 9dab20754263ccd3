/** The package's version. It is the same as in `Cargo.toml`. */
export const version = '0.1.0'
