//! Everything that Rust and WGSL must agree on for one kernel, as plain data.

use super::Subgroups;

/// How a kernel uses one of its bindings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A uniform block.
    Uniform,
    /// The uniform block that holds the [`Step`](super::Step). The recorder binds it.
    Step,
    /// A storage buffer that the kernel only reads.
    Read,
    /// A storage buffer that the kernel writes, or reads and writes.
    Write,
}

/// One binding, in the order of its `@binding` number in group 0.
pub type Binding = (&'static str, Access);

/// A value that is fixed when the pipeline is made. It is written into the shader's text as a
/// `const`.
///
/// It is text and not an `override`, so that array sizes and loop bounds become literals. Every
/// driver's compiler unrolls those, and a model has few distinct shapes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Const {
    /// `u32`.
    U32(&'static str, u32),
    /// `f32`.
    F32(&'static str, f32),
    /// `bool`.
    Bool(&'static str, bool),
}

impl Const {
    /// A size or a count, which shaders hold as `u32`.
    pub const fn size(name: &'static str, value: usize) -> Self {
        Self::U32(name, value as u32)
    }

    /// Its name in shaders.
    pub fn name(&self) -> &'static str {
        match *self {
            Self::U32(name, _) | Self::F32(name, _) | Self::Bool(name, _) => name,
        }
    }

    fn wgsl(&self) -> String {
        match self {
            Self::U32(name, value) => format!("const {name}: u32 = {value}u;\n"),
            // Rust prints the shortest decimal that reads back as the same value.
            Self::F32(name, value) => format!("const {name}: f32 = {value:?}f;\n"),
            Self::Bool(name, value) => format!("const {name}: bool = {value};\n"),
        }
    }
}

/// One way to write a kernel.
#[derive(Debug)]
pub struct Variant {
    /// The variant's name, which `model.info.kernels` shows.
    pub name: &'static str,
    /// Whether it uses subgroup operations. If so, the const `SUBGROUP` holds the size of a
    /// subgroup.
    pub subgroups: bool,
    /// Whether it uses the adapter's matrix units. naga does not know them.
    pub matrix_units: bool,
    /// The files of the shader's text, without its constants.
    pub wgsl: &'static [&'static str],
}

/// A compute kernel. The entry point is always `main`.
#[derive(Debug)]
pub struct Kernel {
    /// The name of the shader file, of the Rust module and of the profiler's row.
    pub name: &'static str,
    /// The bindings, the same in every variant.
    pub bindings: &'static [Binding],
    /// The variants, best first.
    pub variants: &'static [Variant],
    /// The constants of an example: tests compile every variant with them.
    pub example: fn() -> Vec<Const>,
}

/// Which WGSL front end will read the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// The browser's own.
    Browser,
    /// naga, inside a native build of wgpu.
    Native,
}

impl Dialect {
    /// The front end of this build.
    pub const HERE: Self = if cfg!(target_arch = "wasm32") { Self::Browser } else { Self::Native };
}

impl Kernel {
    /// The best variant for a device.
    pub fn variant(&self, subgroups: Option<Subgroups>, matrix_units: bool) -> &'static Variant {
        self.variants
            .iter()
            .find(|v| (subgroups.is_some() || !v.subgroups) && (matrix_units || !v.matrix_units))
            .unwrap_or(&self.variants[self.variants.len() - 1])
    }
}

impl Variant {
    /// The source for wgpu.
    ///
    /// WGSL wants `enable subgroups;` before any subgroup operation. But naga 30 does without the
    /// directive and rejects a shader that has it (gfx-rs/wgpu#8202), so shader files leave it out.
    pub fn source(
        &self,
        dialect: Dialect,
        subgroups: Option<Subgroups>,
        consts: &[Const],
    ) -> String {
        let mut source = String::new();
        if self.matrix_units {
            source.push_str("enable chromium_experimental_subgroup_matrix;\n");
        }
        if let (true, Some(Subgroups(lanes))) = (self.subgroups, subgroups) {
            if dialect == Dialect::Browser {
                source.push_str("enable subgroups;\n");
            }
            source.push_str(&Const::U32("SUBGROUP", lanes).wgsl());
        }
        source.extend(consts.iter().map(Const::wgsl));
        source.extend(self.wgsl.iter().copied());
        source
    }
}

/// A line that begins so names types: `f32, vec2f`. The text after the line, up to the next such line or
/// the end of the file, is written for each of these types, in place of `TYPE`.
const FOR_EACH: &[u8] = b"// For each TYPE of ";

const TYPE: &[u8] = b"TYPE";

/// Writes a shader file to `bare` without its comments and indentation, until `bare` is full.
/// Returns the length of the whole result. A page downloads every shader, so they should be short.
/// Up to the first [`FOR_EACH`] lines keep their numbers, because messages of front ends give them.
pub const fn strip(file: &str, bare: &mut [u8]) -> usize {
    let file = file.as_bytes();
    let mut marker = next_marker(file, 0);
    let mut out = Stripped { bare, len: 0 };
    out.push(file.split_at(marker).0, b"");
    while marker < file.len() {
        let mut at = marker + FOR_EACH.len();
        let mut end = at;
        while file[end] != b'\n' {
            end += 1;
        }
        marker = next_marker(file, end);
        let section = file.split_at(marker).0.split_at(end).1;
        while at < end {
            let first = at;
            while at < end && file[at] != b',' {
                at += 1;
            }
            out.push(section, file.split_at(at).0.split_at(first).1);
            at += 2; // the comma and a space
        }
    }
    out.len
}

/// Where the first [`FOR_EACH`] from `at` on begins; the length of `file` if there is none.
const fn next_marker(file: &[u8], mut at: usize) -> usize {
    while at < file.len() && !is_at(file, at, FOR_EACH) {
        at += 1;
    }
    at
}

const fn is_at(file: &[u8], at: usize, word: &[u8]) -> bool {
    let mut i = 0;
    while i < word.len() && at + i < file.len() && file[at + i] == word[i] {
        i += 1;
    }
    i == word.len()
}

/// A text as [`strip`] writes it.
struct Stripped<'a> {
    bare: &'a mut [u8],
    /// Its bytes so far. `bare` may have room for fewer.
    len: usize,
}

impl Stripped<'_> {
    /// Adds `text`, with `ty` in place of `TYPE`.
    const fn push(&mut self, text: &[u8], ty: &[u8]) {
        let mut at = 0;
        let (mut is_indentation, mut is_comment) = (true, false);
        while at < text.len() {
            let byte = text[at];
            let is_line_end = byte == b'\n';
            is_indentation = is_line_end || is_indentation && byte == b' ';
            is_comment = !is_line_end
                && (is_comment || byte == b'/' && at + 1 < text.len() && text[at + 1] == b'/');
            if is_comment || is_indentation && !is_line_end {
                at += 1;
            } else if is_at(text, at, TYPE) {
                let mut i = 0;
                while i < ty.len() {
                    self.put(ty[i]);
                    i += 1;
                }
                at += TYPE.len();
            } else {
                self.put(byte);
                at += 1;
            }
        }
    }

    const fn put(&mut self, byte: u8) {
        if self.len < self.bare.len() {
            self.bare[self.len] = byte;
        }
        self.len += 1;
    }
}

/// The texts of shader files. A file that many kernels share is in the binary only once. Shaders
/// need no preprocessor, because WGSL allows declarations in any order.
#[macro_export]
macro_rules! wgsl {
    ($($($path:literal)+),+ $(,)?) => {
        &[$({
            const FILE: &str =
                include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/shaders/", $($path,)+ ".wgsl"));
            const BARE: [u8; $crate::gpu::strip(FILE, &mut [])] = {
                let mut bare = [0; _];
                $crate::gpu::strip(FILE, &mut bare);
                bare
            };
            match std::str::from_utf8(&BARE) {
                Ok(bare) => bare,
                Err(_) => FILE,
            }
        }),+]
    };
}

/// The two variants of a kernel that reduces over lanes. `shared/NAME_subgroup.wgsl` and
/// `shared/NAME_workgroup.wgsl` declare the same functions. The names come before the semicolon:
/// `lanes` reduces over the lanes of a row, `group` over a workgroup, `eights` over every eight
/// lanes.
#[macro_export]
macro_rules! lanes_variants {
    ($($name:literal),+; $($path:literal),+ $(,)?) => {
        &[
            $crate::gpu::Variant {
                name: "subgroup",
                subgroups: true,
                matrix_units: false,
                wgsl: $crate::wgsl!($("shared/" $name "_subgroup",)+ $($path),+),
            },
            $crate::gpu::Variant {
                name: "workgroup",
                subgroups: false,
                matrix_units: false,
                wgsl: $crate::wgsl!($("shared/" $name "_workgroup",)+ $($path),+),
            },
        ]
    };
}

/// The variant of a kernel that has only one.
#[macro_export]
macro_rules! one_variant {
    ($($path:literal),+ $(,)?) => {
        &[$crate::gpu::Variant {
            name: "",
            subgroups: false,
            matrix_units: false,
            wgsl: $crate::wgsl!($($path),+),
        }]
    };
}
