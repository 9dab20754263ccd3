//! The report for people.

use ternlight::gpu::KernelTime;

use super::lookup::LookupGain;
use super::{Figure, LeftOut, Report, StepProfile};

pub(super) fn table(report: &Report) -> String {
    let info = &report.info;
    let mut text = format!(
        "{} on {}\n{:.2} GB file, {:.2} GB on the GPU, {} dispatches per token\n\
         memory read at {:.1} GB/s at best\nkernels: {}\n\n",
        info.name,
        info.adapter,
        info.bytes as f64 / 1e9,
        info.gpu_bytes as f64 / 1e9,
        info.dispatches_per_token,
        report.bandwidth,
        info.kernels.join(" "),
    );
    for figure @ Figure { bytes_per_token, share, .. } in &report.figures {
        text += &row(figure, 44);
        if let (Some(bytes), Some(share)) = (bytes_per_token, share) {
            let (megabytes, percent) = (*bytes as f64 / 1e6, 100.0 * share);
            text += &format!("  {megabytes:.1} MB a token, {percent:.1} % of memory's speed");
        }
        text += "\n";
    }
    for LeftOut { what, seconds } in &report.left_out {
        text += &format!("left out, for it takes some {:.0} min: {what}\n", seconds / 60.0);
    }
    text += &lookups(&report.lookups);
    for StepProfile { context, tokens, kernels } in &report.profiles {
        let total: f64 = kernels.iter().map(|k| k.microseconds).sum();
        text += &format!("\n{tokens} tokens after {context}: {total:.0} us in kernels\n");
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
    if let Some(soak) = &report.soak {
        let rates: Vec<String> = soak.rates.iter().map(|rate| format!("{rate:.1}")).collect();
        text += &format!(
            "\n{} tokens in {} chats: the first at {:.1} tok/s, the last at {:.1} \
             ({:.1} when their positions were first reached)\n\
             thousand by thousand: {} tok/s\n\
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

fn row(figure: &Figure, width: usize) -> String {
    let Figure { what, unit, runs, median, least, most, .. } = figure;
    format!("{what:width$} {median:9.1} {unit:6} ({least:.1} to {most:.1}, n={runs})")
}

fn lookups(gains: &[LookupGain]) -> String {
    let Some(LookupGain { prompt_tokens, tokens, .. }) = gains.first() else {
        return String::new();
    };
    let mut text = format!(
        "\nprompt lookup: {tokens} tokens after {prompt_tokens} that count up and begin again, the same with it and without\n"
    );
    for gain in gains {
        let what = match gain.changed {
            None => "to be copied as they are".into(),
            Some(every) => format!("one in {every} of them another"),
        };
        let drafted = gain.drafted_tokens as f64 / gain.draft_passes.max(1) as f64;
        text += &format!("{what}: {:.2} times as fast; ", gain.gain);
        text += &format!("passes: {}, accepted in each: ", gain.draft_passes);
        text += &format!("{:.2} of {drafted:.2} tokens\n", gain.accepted_per_pass);
        for figure in [&gain.plain, &gain.lookup] {
            text += &format!("  {}\n", row(figure, 42));
        }
    }
    text
}
