//! The tokens of questions and their options, and the lanes of the KV cache that they get.

/// The tokens of a question.
#[derive(Clone, PartialEq)]
pub(super) struct Asked {
    /// Those before all options.
    pub(super) prompt: Vec<u32>,
    /// Those of each option, one or more.
    pub(super) answers: Vec<Vec<u32>>,
}

/// The log-probabilities of options without a text.
pub(super) struct Prior {
    pub(super) asked: Vec<Asked>,
    pub(super) found: Vec<Vec<f64>>,
}

impl Asked {
    /// A question with the tokens of `prompt`. `answered` are those of the prompt with each option.
    /// The last tokens of a prompt may be others where an option follows.
    pub(super) fn new(prompt: Vec<u32>, answered: &[Vec<u32>]) -> Self {
        let own = |ids: &Vec<u32>| same(&prompt, ids).min(ids.len().saturating_sub(1));
        let len = answered.iter().map(own).min().unwrap_or_default();
        let answers = answered.iter().map(|ids| ids[len..].to_vec()).collect();
        Self { prompt: prompt[..len].to_vec(), answers }
    }

    /// Tokens of the prompt with the longest option.
    pub(super) fn len(&self) -> usize {
        self.prompt.len() + self.answers.iter().map(Vec::len).max().unwrap_or_default()
    }

    /// The options of more than one token.
    pub(super) fn long(&self) -> impl Iterator<Item = usize> {
        self.answers.iter().enumerate().filter(|(_, ids)| ids.len() > 1).map(|(n, _)| n)
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
        let width = one.long().count().clamp(1, lanes);
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
    let own = |other: &Asked| same(&one.prompt, &other.prompt).min(other.prompt.len() - 1);
    asked.iter().map(own).min().unwrap_or_default()
}

/// How many tokens two texts share from the beginning on.
fn same(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
