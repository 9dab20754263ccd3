//! The CPU.

use super::Wishes;
use crate::compute::Opening;
use crate::cpu::OnCpu;
use crate::error::Result;

/// The CPU, which is always there.
pub(in crate::web) struct Backend;

impl Backend {
    #[allow(clippy::unnecessary_wraps, reason = "a GPU may be missing")]
    pub(in crate::web) fn begin(_wishes: &Wishes) -> Result<Self> {
        Ok(Self)
    }

    #[allow(clippy::unused_self, reason = "a GPU may fail")]
    pub(in crate::web) async fn opened(&self) -> Result<()> {
        Ok(())
    }

    #[allow(clippy::unused_self, reason = "a GPU may be open already")]
    pub(in crate::web) fn open(&self) -> impl Opening + use<> {
        OnCpu::default()
    }
}
