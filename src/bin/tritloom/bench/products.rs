//! The time of a weight of each type in a product on the CPU.

use tritloom::Result;
use tritloom::cpu::{ProductTime, product_times};

use super::print_json;
use crate::output::print;

/// The type that others are compared with.
const YARDSTICK: &str = "I2_S";

pub(super) fn print_times(threads: Option<usize>, json: bool) -> Result<()> {
    let times = product_times(threads);
    if json { print_json(&times) } else { print(&table(&times)) }
}

/// A line for each type and instruction set. Times are in picoseconds.
fn table(times: &[ProductTime]) -> String {
    let mut text = format!(
        "{:14} {:12} {:>5} {:>10} {:>8} {:>12} {:>8}\n",
        "type", "instructions", "bits", "ps, 1 tok.", "x I2_S", "ps, 4 tok.", "x I2_S"
    );
    for ProductTime { ty, instructions, bits, one_token, four_tokens } in times {
        let is_yardstick =
            |other: &&ProductTime| other.ty == YARDSTICK && other.instructions == *instructions;
        let [one, four] = match times.iter().find(is_yardstick) {
            Some(i2_s) => [one_token / i2_s.one_token, four_tokens / i2_s.four_tokens],
            None => [f64::NAN; 2],
        };
        text += &format!(
            "{ty:14} {instructions:12} {bits:5.2} {one_token:10.1} {one:8.2} {four_tokens:12.1} {four:8.2}\n"
        );
    }
    text
}
