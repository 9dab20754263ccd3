//! Prints the browser source of every kernel as JSON, for `tests/web/kernels.spec.ts`.
#![allow(clippy::print_stdout, reason = "its purpose")]

#[path = "shaders.rs"]
mod shaders;

use tritloom::gpu::Dialect;

fn main() {
    let shaders: Vec<_> = shaders::shaders(Dialect::Browser)
        .into_iter()
        .map(|shader| {
            let bindings: Vec<_> =
                shader.kernel.bindings.iter().map(|(_, access)| format!("{access:?}")).collect();
            serde_json::json!({
                "name": shader.name,
                "subgroups": shader.subgroups,
                "matrixUnits": shader.matrix_units,
                "bindings": bindings,
                "source": shader.source,
            })
        })
        .collect();
    println!("{}", serde_json::Value::Array(shaders));
}
