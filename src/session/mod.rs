//! A loaded model: prompt in, tokens out.

mod admission;
mod asked;
mod caches;
mod calling;
mod calls;
mod chunks;
mod constraint;
mod conversation;
mod decide;
mod draft;
#[cfg(test)]
mod fake;
mod foresight;
mod generate;
mod generation;
mod guess;
mod header;
mod info;
mod loaded;
mod lookup;
mod options;
mod output;
mod pace;
mod prefill;
mod question;
mod run;
mod room;
mod saved;
mod score;
mod serve;
mod stats;
mod stop;
mod work;

pub use crate::chat::Channel;
pub use crate::compute::{KvType, LmHead, Profile, Progress};
pub use calls::{Answer, Calls, OnToken, Prompt};
pub use constraint::{Constraint, Constraints, Follow};
pub use decide::{DecideOptions, Decided, Decision, DecisionStats, Decisions, Normalize};
pub use generate::GenerateOptions;
pub use info::Info;
pub use loaded::{Memory, Session};
pub use options::LoadOptions;
pub use output::{CallPart, Token};
pub use question::{Label, Question, QuestionKind};
pub use stats::{FinishReason, Stats};
