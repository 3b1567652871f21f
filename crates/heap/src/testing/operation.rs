//! Random programs: what a mutator can do, as a list of operations that prints as text.
//!
//! Every sequence of bytes is a program, eight bytes to an operation: so the same decoder serves
//! property tests, the fuzzer and the soak. Operands are small numbers that are taken modulo what
//! there is when the operation runs, so every program can run, and stays a program when operations
//! are taken out of it.

use std::fmt;

/// A program, and the heap that it runs on.
#[derive(Clone, PartialEq, Eq)]
pub struct Program {
    /// The heap.
    pub setting: Setting,
    /// What it does.
    pub operations: Vec<Operation>,
}

/// How much memory there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Room {
    /// A few blocks: every program runs out of memory sooner or later.
    Tiny,
    /// Enough for most programs; collections happen on their own.
    Small,
    /// More than any program can fill: running out of memory is an error.
    Ample,
}

/// The heap of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setting {
    /// How much memory there is.
    pub room: Room,
    /// The program sees no decision that is left to the collector: weak slots are read only right
    /// after a full collection, and there are no guardians. Then all collectors must give the same.
    pub orderly: bool,
    /// Objects marked and swept in a step of the incremental collector; 0 lets it choose.
    pub stride: u8,
}

/// A shape of the programs, taken modulo their number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Class(pub u8);

impl fmt::Debug for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(super::catalogue::NAMES[self.index()])
    }
}

impl Class {
    /// Its place in the catalogue.
    pub fn index(self) -> usize {
        self.0 as usize % super::catalogue::NAMES.len()
    }
}

/// The length of an array, one of a few; fixed shapes ignore it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Length(pub u8);

impl fmt::Debug for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.elements())
    }
}

impl Length {
    /// The number of elements.
    pub fn elements(self) -> u32 {
        super::catalogue::LENGTHS[self.0 as usize % super::catalogue::LENGTHS.len()]
    }
}

/// What a mutator does. `holder`, `value`, `from`, `at` are positions on its stack of roots; a
/// holder is the first object from there on that has a slot of the kind that is needed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Allocates an object and pushes it.
    New { shape: Class, length: Length },
    /// Allocates objects and keeps none.
    Garbage {
        shape: Class,
        length: Length,
        count: u8,
    },
    /// Allocates a linked list and pushes its head.
    List { length: u8 },
    /// Stores what is at `value` into a strong slot.
    Store { holder: u8, slot: u16, value: u8 },
    /// Stores null into a strong slot.
    Clear { holder: u8, slot: u16 },
    /// Stores an immediate into a strong slot.
    Immediate { holder: u8, slot: u16, number: u16 },
    /// Stores what is at `value` into a weak or phantom slot.
    Weak { holder: u8, slot: u16, value: u8 },
    /// Stores key and value into an ephemeron.
    Ephemeron { holder: u8, key: u8, value: u8 },
    /// Writes a word of data.
    Word { holder: u8, slot: u16, number: u16 },
    /// Reads a slot of any kind and pushes what it holds.
    Load { holder: u8, slot: u16 },
    /// Pushes a copy of a root.
    Copy { from: u8 },
    /// Overwrites a root with another.
    Move { from: u8, to: u8 },
    /// Overwrites a root with null.
    Drop { at: u8 },
    /// Pops roots until at most `keep` are left.
    Truncate { keep: u8 },
    /// Overwrites a root of the mutator's frame.
    Frame { at: u8, from: u8 },
    /// Makes a global handle.
    Global { from: u8 },
    /// Overwrites a global handle.
    SetGlobal { global: u8, from: u8 },
    /// Pushes what a global handle holds.
    GetGlobal { global: u8 },
    /// Drops a global handle.
    DropGlobal { global: u8 },
    /// Registers an object with a guardian.
    Guard { guardian: u8, target: u8 },
    /// Takes an object from a guardian's queue and pushes it.
    Poll { guardian: u8 },
    /// Lets the collector do a step, `count` times.
    Step { count: u8 },
    /// Collects everything that is dead, and compares the heap with the specification.
    Collect,
    /// Compares the heap with the specification, whatever the collector is at.
    Compare,
    /// Ends the mutator and begins another, with the same roots.
    Renew,
}

impl Operation {
    /// The operation that eight bytes stand for: every one of them is one.
    pub fn decode(bytes: [u8; 8]) -> Operation {
        let [kind, a, b, c, d, ..] = bytes;
        let slot = u16::from_le_bytes([b, bytes[5]]);
        let number = u16::from_le_bytes([c, d]);
        match kind {
            0..40 => Operation::New {
                shape: Class(a),
                length: Length(b),
            },
            40..52 => Operation::Garbage {
                shape: Class(a),
                length: Length(b),
                count: c,
            },
            52..58 => Operation::List { length: a },
            58..98 => Operation::Store {
                holder: a,
                slot,
                value: c,
            },
            98..106 => Operation::Clear { holder: a, slot },
            106..110 => Operation::Immediate {
                holder: a,
                slot,
                number,
            },
            110..124 => Operation::Weak {
                holder: a,
                slot,
                value: c,
            },
            124..136 => Operation::Ephemeron {
                holder: a,
                key: b,
                value: c,
            },
            136..142 => Operation::Word {
                holder: a,
                slot,
                number,
            },
            142..164 => Operation::Load { holder: a, slot },
            164..170 => Operation::Copy { from: a },
            170..176 => Operation::Move { from: a, to: b },
            176..190 => Operation::Drop { at: a },
            190..194 => Operation::Truncate { keep: a },
            194..198 => Operation::Frame { at: a, from: b },
            198..201 => Operation::Global { from: a },
            201..204 => Operation::SetGlobal { global: a, from: b },
            204..206 => Operation::GetGlobal { global: a },
            206..208 => Operation::DropGlobal { global: a },
            208..215 => Operation::Guard {
                guardian: a,
                target: b,
            },
            215..220 => Operation::Poll { guardian: a },
            220..238 => Operation::Step { count: a },
            238..248 => Operation::Collect,
            248..252 => Operation::Compare,
            252.. => Operation::Renew,
        }
    }
}

impl Setting {
    /// The setting that two bytes stand for.
    pub fn decode(room: u8, stride: u8) -> Setting {
        let (room, orderly) = match room % 8 {
            0..3 => (Room::Small, false),
            3..5 => (Room::Tiny, false),
            5 => (Room::Ample, false),
            _ => (Room::Ample, true),
        };
        Setting {
            room,
            orderly,
            stride,
        }
    }
}

impl Program {
    /// The program that a sequence of bytes stands for: a setting of two bytes, then eight for each
    /// operation; what is left over is ignored.
    pub fn decode(bytes: &[u8]) -> Program {
        let (room, rest) = bytes.split_first().unwrap_or((&0, &[]));
        let (stride, rest) = rest.split_first().unwrap_or((&0, &[]));
        let (operations, _) = rest.as_chunks::<8>();
        Program {
            setting: Setting::decode(*room, *stride),
            operations: operations.iter().copied().map(Operation::decode).collect(),
        }
    }

    /// The program of so many operations that `seed` stands for.
    pub fn random(seed: u64, operations: usize) -> Program {
        // Splitmix64: G. Steele, D. Lea and C. Flood, OOPSLA 2014.
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        };
        let [room, stride, ..] = next().to_le_bytes();
        Program {
            setting: Setting::decode(room, stride),
            operations: (0..operations)
                .map(|_| Operation::decode(next().to_le_bytes()))
                .collect(),
        }
    }

    /// A program that fails as well and from which no operation can be taken away, found by taking
    /// away ever smaller pieces.
    pub fn shrink(&self, fails: impl Fn(&Program) -> bool) -> Program {
        let mut best = self.clone();
        let mut piece = best.operations.len().div_ceil(2);
        while piece > 0 {
            let mut at = 0;
            let mut shorter = false;
            while at < best.operations.len() {
                let mut candidate = best.clone();
                let end = (at + piece).min(candidate.operations.len());
                candidate.operations.drain(at..end);
                if fails(&candidate) {
                    best = candidate;
                    shorter = true;
                } else {
                    at += piece;
                }
            }
            if !(piece == 1 && shorter) {
                piece /= 2;
            }
        }
        best
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:?}", self.setting)?;
        for (step, operation) in self.operations.iter().enumerate() {
            writeln!(f, "{step:4}: {operation:?}")?;
        }
        Ok(())
    }
}
