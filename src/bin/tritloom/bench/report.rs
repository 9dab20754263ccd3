//! The benchmark's report, as JSON (by serde) and as a table.

use serde::Serialize;

use tritloom::compute::{Backend, KernelTime};
use tritloom::session::Info;

use super::figure::Figure;
use super::lookup::LookupGain;
use super::soak::Soak;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    pub(super) info: Info,
    /// GB/s of a kernel that only reads; on the CPU, of all threads together.
    pub(super) bandwidth: f64,
    pub(super) figures: Vec<Figure>,
    pub(super) left_out: Vec<LeftOut>,
    pub(super) lookups: Vec<LookupGain>,
    pub(super) profiles: Vec<StepProfile>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) soak: Option<Soak>,
}

/// The kernels of one step of `tokens` at a context length, the slowest first.
#[derive(Serialize)]
pub(super) struct StepProfile {
    pub(super) context: usize,
    pub(super) tokens: usize,
    /// How the next token is drawn, unless it is the best one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) drawn: Option<&'static str>,
    pub(super) kernels: Vec<KernelTime>,
}

/// A figure that was not taken, and the seconds that it would have taken.
#[derive(Serialize)]
pub(super) struct LeftOut {
    pub(super) what: String,
    pub(super) seconds: f64,
}

impl Report {
    /// The report for people.
    pub(super) fn to_table(&self) -> String {
        let info = &self.info;
        let mut text = format!(
            "{} on {}\n{:.2} GB file, {:.2} GB {}{}, {} dispatches per token\n\
         memory read at {:.1} GB/s at best\nkernels: {}\n\n",
            info.name,
            info.adapter,
            info.bytes as f64 / 1e9,
            info.gpu_bytes as f64 / 1e9,
            if info.backend == Backend::Cpu { "in memory" } else { "on the GPU" },
            match info.streamed_layers {
                0 => String::new(),
                n => format!(", {n} layers streamed"),
            },
            info.dispatches_per_token,
            self.bandwidth,
            info.kernels.join(" "),
        );
        for figure @ Figure { bytes_per_token, share, .. } in &self.figures {
            text += &row(figure, 44);
            if let (Some(bytes), Some(share)) = (bytes_per_token, share) {
                let (megabytes, percent) = (*bytes as f64 / 1e6, 100.0 * share);
                text += &format!("  {megabytes:.1} MB a token, {percent:.1} % of memory's speed");
            }
            text += "\n";
        }
        for LeftOut { what, seconds } in &self.left_out {
            text += &format!("left out because it takes about {:.0} min: {what}\n", seconds / 60.0);
        }
        text += &lookups(&self.lookups);
        for StepProfile { context, tokens, drawn, kernels } in &self.profiles {
            let total: f64 = kernels.iter().map(|k| k.microseconds).sum();
            let how = drawn.map(|how| format!(", {how}")).unwrap_or_default();
            text += &format!("\n{tokens} tokens after {context}{how}: {total:.0} us in kernels\n");
            for KernelTime { kernel, calls, microseconds, bytes, gigabytes_per_second, share } in
                kernels
            {
                let each = microseconds / *calls as f64;
                let (megabytes, percent) = (*bytes as f64 / 1e6, 100.0 * share);
                text += &format!(
                    "  {kernel:28} {calls:4} x {each:8.1} us = {microseconds:8.0} us  \
                 {megabytes:8.2} MB {gigabytes_per_second:8.1} GB/s {percent:5.1} %\n"
                );
            }
        }
        if let Some(soak) = &self.soak {
            let rates: Vec<String> = soak.rates.iter().map(|rate| format!("{rate:.1}")).collect();
            text += &format!(
                "\n{} tokens in {} chats: the first at {:.1} tok/s, the last at {:.1} \
             ({:.1} when their positions were first reached)\n\
             each thousand tokens: {} tok/s\n\
             GPU buffers: {} bytes after the first turn, {} at the end\n",
                soak.tokens,
                soak.chats,
                soak.first,
                soak.last,
                soak.last_at_first,
                rates.join(", "),
                soak.gpu_bytes_before,
                soak.gpu_bytes_after,
            );
        }
        text
    }
}

fn row(figure: &Figure, width: usize) -> String {
    let Figure { what, unit, runs, median, least, most, .. } = figure;
    format!("{what:width$} {median:9.1} {unit:6} ({least:.1} to {most:.1}, n={runs})")
}

fn lookups(gains: &[LookupGain]) -> String {
    let Some(LookupGain { prompt_tokens, tokens, .. }) = gains.first() else {
        return String::new();
    };
    let mut text = format!(
        "\nprompt lookup: {tokens} tokens after {prompt_tokens} that count up and start again; \
         the same tokens with and without it\n"
    );
    for gain in gains {
        let what = match gain.changed {
            None => "copied as they are".into(),
            Some(every) => format!("one in {every} of them changed"),
        };
        let drafted = gain.drafted_tokens as f64 / gain.draft_passes.max(1) as f64;
        text += &format!("{what}: {:.2} times as fast; ", gain.gain);
        text += &format!("draft passes: {}, accepted in each: ", gain.draft_passes);
        text += &format!("{:.2} of {drafted:.2} tokens\n", gain.accepted_per_pass);
        for figure in [&gain.plain, &gain.lookup] {
            text += &format!("  {}\n", row(figure, 42));
        }
    }
    text
}
