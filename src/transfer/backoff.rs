//! How often a download tries again, and how long it waits before that.

/// The most attempts at a file of which no byte has come yet: a visitor is waiting for an answer.
const MAX_ATTEMPTS: u32 = 4;
/// The most attempts once some bytes have come: with half a gigabyte it is worth waiting until a
/// laptop has found its network again.
const MAX_ATTEMPTS_BEGUN: u32 = 8;
/// Milliseconds before the second attempt. Each later wait is twice as long.
const FIRST_WAIT: f64 = 250.0;
/// The longest wait of our own choice, in milliseconds. All waits together take about 24 seconds.
const MAX_WAIT: f64 = 8_000.0;
/// The longest wait that a server may ask for. If it asks for more, the download fails with what
/// the server said.
const MAX_WAIT_ASKED: f64 = 120_000.0;

/// Counts the failures in a row.
#[derive(Clone, Debug, Default)]
pub struct Backoff {
    failures: u32,
}

impl Backoff {
    /// Counts no earlier failures any more, because bytes have come.
    pub fn progressed(&mut self) {
        self.failures = 0;
    }

    /// Counts a failure and returns the milliseconds to wait before the next attempt; `None` if
    /// that was the last attempt.
    ///
    /// `begun` says that some bytes of the file are here, from this load or an earlier one. `asked`
    /// is the wait that the server asked for (`Retry-After`), in milliseconds. `random`, in [0, 1),
    /// spreads the attempts of many clients.
    pub fn failed(&mut self, begun: bool, asked: Option<f64>, random: f64) -> Option<f64> {
        self.failures += 1;
        if self.failures >= if begun { MAX_ATTEMPTS_BEGUN } else { MAX_ATTEMPTS } {
            return None;
        }
        let wait = (FIRST_WAIT * 2_f64.powi(self.failures as i32 - 1)).min(MAX_WAIT);
        let wait = wait * (0.5 + random);
        match asked {
            Some(asked) if asked > MAX_WAIT_ASKED => None,
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
        assert_eq!(patient.last(), Some(&MAX_WAIT));
    }

    #[test]
    fn progress_resets_the_count() {
        let mut backoff = Backoff::default();
        for _ in 0..100 {
            assert_eq!(backoff.failed(true, None, 0.5), Some(250.0));
            backoff.progressed();
        }
    }

    #[test]
    fn a_server_may_ask_for_a_longer_wait_up_to_a_limit() {
        assert_eq!(Backoff::default().failed(false, Some(3000.0), 0.5), Some(3000.0));
        assert_eq!(Backoff::default().failed(false, Some(0.0), 0.5), Some(250.0));
        assert_eq!(Backoff::default().failed(false, Some(1e9), 0.5), None);
    }
}
