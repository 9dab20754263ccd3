//! Random numbers for the tests that code passes before it is used.

pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// A number of 24 bits.
    pub(crate) fn next(&mut self) -> u32 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as u32
    }
}
