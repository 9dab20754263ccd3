//! How the rows of a matrix are dealt out to a workgroup's lanes.

use crate::gpu::Const;

/// `lanes` neighbouring lanes share `each` rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowGroups {
    pub(super) workgroup: u32,
    pub(super) lanes: u32,
    pub(super) each: u32,
}

impl RowGroups {
    pub(super) fn tuned(name: &str, workgroup: u32, lanes: u32, each: u32) -> Self {
        match std::env::var(name) {
            Ok(v) => {
                let v: Vec<u32> = v.split(',').map(|v| v.parse().unwrap()).collect();
                Self { workgroup: v[0], lanes: v[1], each: v[2] }
            }
            Err(_) => Self { workgroup, lanes, each },
        }
    }

    pub(super) fn consts<const N: usize>(&self, mut c: [Const; N]) -> [Const; N] {
        if std::env::var("NOPREFETCH").is_ok() {
            for c in &mut c {
                if let Const::Bool("PREFETCH", v) = c {
                    *v = false;
                }
            }
        }
        c
    }

    pub(super) fn workgroups(&self, rows: usize) -> u32 {
        (rows as u32).div_ceil(self.workgroup / self.lanes * self.each)
    }
}
