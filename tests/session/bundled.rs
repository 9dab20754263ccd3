//! The bundled model: its greedy texts token by token, and its logits as it is loaded by default.

use tritloom::session::{FinishReason, Session};

use crate::logits::short_prompts;
use crate::setup::{Golden, Goldens, Setup, generate, greedy};

/// A token with a smaller lead may be overtaken: f32 arithmetic can tip an int8 rounding, and that
/// moves a logit by as much.
const SMALL_LEAD: f32 = 0.3;

/// Whether a greedy text is the golden one; if not, the first other token had a small lead.
fn is_golden(session: &mut Session, golden: &Golden) -> bool {
    let name = &golden.name;
    let found = generate(session, &golden.ids, &greedy(golden.greedy.len())).unwrap();
    let expected = golden.expected();
    let differs = (0..golden.greedy.len()).find(|&i| found.ids.get(i) != expected.get(i));
    if let Some(step) = differs {
        let lead = golden.greedy_margins[step];
        assert!(lead < SMALL_LEAD, "{name} differs at step {step}, where the lead is {lead}");
        return false;
    }
    assert_eq!(found.text, golden.greedy_text, "{name}");
    let reason = if golden.greedy_stopped { FinishReason::Stop } else { FinishReason::Length };
    assert_eq!(found.stats.finish_reason, reason, "{name}");
    true
}

/// Some of them: `tests/web/goldens.spec.ts` has all.
#[test]
fn logits_and_greedy_texts_match_the_goldens() {
    let mut session = Setup::default().bundled();
    let goldens = Goldens::bundled();
    // The cache is f16, which moves logits by about 0.05. That may swap tokens with the smallest leads.
    short_prompts(&mut session, &goldens, 0.15);
    let some = &goldens.prompts[..6];
    let equal = some.iter().filter(|golden| is_golden(&mut session, golden)).count();
    assert!(equal >= 5, "only {equal} of {} texts", some.len());
}
