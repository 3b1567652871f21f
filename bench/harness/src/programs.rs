//! The programs: how they are called, how much heap they get, and the checksum that a correct run prints.

/// A program with its parameters.
#[derive(Debug)]
pub(crate) struct Program {
    /// Its name in tables and filters.
    pub(crate) name: &'static str,
    /// The arguments that select it.
    pub(crate) args: &'static [&'static str],
    /// What every contender must print (PROGRAMS.md).
    pub(crate) checksum: &'static str,
    /// The limit of the heap.
    pub(crate) heap: Heap,
    /// Who runs it.
    pub(crate) entrants: Entrants,
}

/// How the limit of the heap is chosen.
#[derive(Debug)]
pub(crate) enum Heap {
    /// The same number of bytes for all.
    Fixed(u64),
    /// 2.6 times the live bytes, which depend on the layout of objects.
    PerLayout {
        /// One-word headers, 64-bit references.
        one_word: u64,
        /// HotSpot's compressed class pointers and references.
        compressed: u64,
        /// One-word headers, 32-bit references.
        liveoak: u64,
    },
}

/// Who runs a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entrants {
    /// Everybody.
    All,
    /// Only Liveoak: the program measures its collector from inside.
    Liveoak,
}

const MIB: u64 = 1 << 20;

/// All programs, in the order of the tables.
pub(crate) static PROGRAMS: &[Program] = &[
    Program {
        name: "gcbench",
        args: &["gcbench"],
        checksum: "gcbench trees=89624 spine=506603 live=131071 array=402a034ac65bd2ad",
        heap: Heap::Fixed(256 * MIB),
        entrants: Entrants::All,
    },
    Program {
        name: "binary-trees-16",
        args: &["binary-trees", "--depth", "16"],
        checksum: "binary-trees 16 stretch=262143 4=65536:2031616 6=16384:2080768 8=4096:2093056 10=1024:2096128 12=256:2096896 14=64:2097088 16=16:2097136 long=131071",
        heap: Heap::Fixed(256 * MIB),
        entrants: Entrants::All,
    },
    Program {
        name: "binary-trees-18",
        args: &["binary-trees", "--depth", "18"],
        checksum: "binary-trees 18 stretch=1048575 4=262144:8126464 6=65536:8323072 8=16384:8372224 10=4096:8384512 12=1024:8387584 14=256:8388352 16=64:8388544 18=16:8388592 long=524287",
        heap: Heap::Fixed(256 * MIB),
        entrants: Entrants::All,
    },
    Program {
        name: "binary-trees-20",
        args: &["binary-trees", "--depth", "20"],
        checksum: "binary-trees 20 stretch=4194303 4=1048576:32505856 6=262144:33292288 8=65536:33488896 10=16384:33538048 12=4096:33550336 14=1024:33553408 16=256:33554176 18=64:33554368 20=16:33554416 long=2097151",
        heap: Heap::Fixed(512 * MIB),
        entrants: Entrants::All,
    },
    Program {
        name: "large-live-heap",
        args: &["large-live-heap"],
        checksum: "large-live-heap 465c6431cad05b8b",
        heap: Heap::PerLayout {
            one_word: 645_000_000,
            compressed: 739_000_000,
            liveoak: 531_000_000,
        },
        entrants: Entrants::All,
    },
    Program {
        name: "long-list",
        args: &["long-list", "--objects", "10000000"],
        checksum: "long-list 10000000 sum=50499994500000",
        heap: Heap::Fixed(1024 * MIB),
        entrants: Entrants::All,
    },
    Program {
        name: "scaling-1e4",
        args: &["scaling", "--objects", "10000"],
        checksum: "scaling 10000",
        heap: Heap::Fixed(1024 * MIB),
        entrants: Entrants::Liveoak,
    },
    Program {
        name: "scaling-1e5",
        args: &["scaling", "--objects", "100000"],
        checksum: "scaling 100000",
        heap: Heap::Fixed(1024 * MIB),
        entrants: Entrants::Liveoak,
    },
    Program {
        name: "scaling-1e6",
        args: &["scaling", "--objects", "1000000"],
        checksum: "scaling 1000000",
        heap: Heap::Fixed(1024 * MIB),
        entrants: Entrants::Liveoak,
    },
    Program {
        name: "scaling-1e7",
        args: &["scaling", "--objects", "10000000"],
        checksum: "scaling 10000000",
        heap: Heap::Fixed(1024 * MIB),
        entrants: Entrants::Liveoak,
    },
];
