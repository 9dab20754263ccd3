// How often the output has a token, and IN_PROMPT if the prompt has it. The kernel declares step, tokens
// and counts.

// Counts the step's token first, if the GPU chose it. The caller has already counted the earlier
// tokens. To be called once for each token, by the same lane in every step, so that no other lane
// changes its count.
fn counted(id: u32) -> u32 {
    let is_output = step.n_tokens == 1u && step.pos >= penalties.n_counted;
    if is_output && id == tokens[0] {
        counts[id] += 1u;
    }
    return counts[id];
}
