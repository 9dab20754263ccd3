//! How often to try again, and how long to wait before.

/// Attempts at a file of which not a byte is here: a visitor is waiting for an answer.
const ATTEMPTS: u32 = 4;
/// Attempts at one of which some are: half a gigabyte is worth waiting until a laptop has found its
/// network.
const ATTEMPTS_BEGUN: u32 = 8;
/// Milliseconds before the second attempt; they double with each.
const FIRST: f64 = 250.0;
/// The longest wait of our own choice. All of them together are some 24 seconds.
const LONGEST: f64 = 8_000.0;
/// The longest wait that a server may ask for; beyond it, its answer is the answer.
const LONGEST_ASKED: f64 = 120_000.0;

/// Failures in a row.
#[derive(Clone, Debug, Default)]
pub struct Backoff {
    failures: u32,
}

impl Backoff {
    /// Bytes have come: what failed before is forgotten.
    pub fn progressed(&mut self) {
        self.failures = 0;
    }

    /// Counts a failure. Milliseconds to wait before the next attempt; `None` if that was the last.
    ///
    /// `begun`: bytes of the file are here, of this load or of an earlier one. `asked`: what the
    /// server asked for (Retry-After), milliseconds. `random` in [0, 1) spreads the attempts of many
    /// clients.
    pub fn failed(&mut self, begun: bool, asked: Option<f64>, random: f64) -> Option<f64> {
        self.failures += 1;
        if self.failures >= if begun { ATTEMPTS_BEGUN } else { ATTEMPTS } {
            return None;
        }
        let wait = (FIRST * 2_f64.powi(self.failures as i32 - 1)).min(LONGEST);
        let wait = wait * (0.5 + random);
        match asked {
            Some(asked) if asked > LONGEST_ASKED => None,
            Some(asked) => Some(wait.max(asked)),
            None => Some(wait),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(begun: bool, random: f64) -> Vec<f64> {
        let mut backoff = Backoff::default();
        std::iter::from_fn(|| backoff.failed(begun, None, random)).collect()
    }

    #[test]
    fn waits_double_and_end() {
        assert_eq!(waits(false, 0.5), [250.0, 500.0, 1000.0]);
        assert_eq!(waits(false, 0.0), [125.0, 250.0, 500.0]);
        let patient = waits(true, 0.5);
        assert_eq!(patient.len(), 7);
        assert_eq!(patient.last(), Some(&LONGEST));
    }

    #[test]
    fn progress_forgives() {
        let mut backoff = Backoff::default();
        for _ in 0..100 {
            assert_eq!(backoff.failed(true, None, 0.5), Some(250.0));
            backoff.progressed();
        }
    }

    #[test]
    fn a_server_may_ask_for_more_but_not_for_ever() {
        assert_eq!(Backoff::default().failed(false, Some(3000.0), 0.5), Some(3000.0));
        assert_eq!(Backoff::default().failed(false, Some(0.0), 0.5), Some(250.0));
        assert_eq!(Backoff::default().failed(false, Some(1e9), 0.5), None);
    }
}
