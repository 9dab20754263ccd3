//! The tokens of questions and their options, and the lanes of the KV cache that they get.

/// The tokens of a question.
#[derive(Clone, PartialEq)]
pub(super) struct Asked {
    /// Those before all options, one or more.
    pub(super) prompt: Vec<u32>,
    /// The last token of the prompt, and after it those of each option, one or more.
    pub(super) answers: Vec<Vec<u32>>,
}

/// The log-probabilities of options without a text.
pub(super) struct Prior {
    pub(super) asked: Vec<Asked>,
    pub(super) found: Vec<Vec<f64>>,
}

impl Asked {
    /// Tokens of the prompt with the longest option.
    pub(super) fn len(&self) -> usize {
        let longest = self.answers.iter().map(Vec::len).max().unwrap_or_default();
        (self.prompt.len() + longest).saturating_sub(1)
    }

    /// Tokens of an option.
    pub(super) fn tokens(&self, option: usize) -> usize {
        self.answers[option].len() - 1
    }
}

/// A question that has lanes.
pub(super) struct Seated {
    pub(super) n: usize,
    /// Its first lane.
    pub(super) at: usize,
    /// The number of its lanes.
    pub(super) width: usize,
}

/// Gives questions their lanes. All questions of a group have lanes at a time.
pub(super) fn groups(asked: &[Asked], lanes: usize) -> Vec<Vec<Seated>> {
    let mut groups: Vec<Vec<Seated>> = Vec::new();
    let mut at = lanes;
    for (n, one) in asked.iter().enumerate() {
        let width = one.answers.len().clamp(1, lanes);
        if at + width > lanes {
            groups.push(Vec::new());
            at = 0;
        }
        if let Some(group) = groups.last_mut() {
            group.push(Seated { n, at, width });
        }
        at += width;
    }
    groups
}

/// How many tokens all questions share. It leaves each a token whose logits are needed.
pub(super) fn shared(asked: &[Asked]) -> usize {
    let Some(one) = asked.first() else { return 0 };
    let same = |other: &Asked| {
        let same = one.prompt.iter().zip(&other.prompt).take_while(|(a, b)| a == b);
        same.count().min(other.prompt.len() - 1)
    };
    asked.iter().map(same).min().unwrap_or_default()
}
