//! Which weights stay on the GPU, where it has too little memory for all. The others are portions in main memory,
//! which are uploaded whenever a step needs them.

use crate::gpu::staged;

/// The number of bays. While kernels read the portion in one, the next portion is uploaded to the other.
const BAYS: usize = 2;

/// Which weights stay on the GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Residency {
    /// For each block, whether its matrices stay.
    blocks: Vec<bool>,
    pub(super) lm_head: bool,
    pub(super) embedding: bool,
    /// Bytes of a bay.
    pub(super) bay: u64,
}

impl Residency {
    /// Everything stays.
    pub(super) fn whole(n_layer: usize) -> Self {
        Self::of_blocks(n_layer, n_layer)
    }

    /// Everything but blocks stays, and of these `stay`. They are spread over the model, so that a portion is
    /// uploaded while the blocks before it compute.
    pub(super) fn of_blocks(n_layer: usize, stay: usize) -> Self {
        let come = n_layer - stay;
        let stays = |n| (n + 1) * come / n_layer == n * come / n_layer;
        let blocks = (0..n_layer).map(stays).collect();
        Self { blocks, lm_head: true, embedding: true, bay: 0 }
    }

    /// Whether all weights stay.
    pub(super) fn is_whole(&self) -> bool {
        self.embedding && self.lm_head && self.streamed() == 0
    }

    /// The number of blocks that do not stay.
    pub(super) fn streamed(&self) -> usize {
        self.blocks.iter().filter(|stays| !**stays).count()
    }

    pub(super) fn block_stays(&self, n: usize) -> bool {
        self.blocks[n]
    }

    /// Whether there are portions that take bays in turn.
    pub(super) fn has_bays(&self) -> bool {
        self.streamed() > 0 || !self.lm_head
    }

    /// The number of bays.
    pub(super) fn bays(&self) -> usize {
        if self.has_bays() { BAYS } else { 0 }
    }

    /// Bytes of the buffers through which portions are uploaded.
    pub(super) fn staged(&self) -> u64 {
        if self.has_bays() { staged(self.bay) } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::Residency;

    #[test]
    fn blocks_that_stay_are_spread_over_the_model() {
        let stay = |n_layer, n| -> Vec<usize> {
            let residency = Residency::of_blocks(n_layer, n);
            (0..n_layer).filter(|n| residency.block_stays(*n)).collect()
        };
        assert_eq!(stay(8, 8), (0..8).collect::<Vec<_>>());
        assert!(stay(8, 0).is_empty());
        assert_eq!(stay(8, 4), [0, 2, 4, 6]);
        assert_eq!(stay(5, 2), [0, 2]);
        for n in 0..=30 {
            assert_eq!(stay(30, n).len(), n);
        }
    }

    #[test]
    fn a_model_without_only_its_embedding_uploads_nothing() {
        let rows = Residency { embedding: false, bay: 9, ..Residency::whole(3) };
        assert!(!rows.is_whole() && !rows.has_bays());
        assert_eq!((rows.bays(), rows.staged()), (0, 0));
        let slices = Residency { lm_head: false, ..rows };
        assert!(slices.bays() > 1 && slices.staged() > 0);
    }
}
