//! The floor: a bump arena. No header, no barrier, no roots, no collector.
//!
//! `--plan bump` (the default) never frees: it pays for fresh memory, and its peak is all that the program ever
//! allocated. `--plan region` goes back to where it was when the program says that all since then is garbage (what a
//! program with regions would do by hand); its memory stays warm, and nothing that allocates object by object can be
//! faster.

use bench_programs::command::Command;
use bench_programs::raw::{RawHeap, Ref, run};
use bench_programs::report::Report;

/// Address space that is reserved at the start; memory comes as it is touched.
const RESERVED: usize = 16 << 30;

struct Bump<const REGION: bool> {
    cursor: *mut u64,
    limit: *mut u64,
}

impl<const REGION: bool> Bump<REGION> {
    fn new() -> Self {
        // SAFETY: a new anonymous mapping touches no memory of ours; the advice is within it.
        let start = unsafe {
            let start = libc::mmap(
                std::ptr::null_mut(),
                RESERVED,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            );
            assert_ne!(start, libc::MAP_FAILED, "no address space");
            libc::madvise(start, RESERVED, libc::MADV_HUGEPAGE);
            start.cast::<u64>()
        };
        Self {
            cursor: start,
            // SAFETY: one past the end of the mapping.
            limit: unsafe { start.add(RESERVED / 8) },
        }
    }

    #[inline(always)]
    fn take(&mut self, words: usize) -> *mut u64 {
        let room = (self.limit as usize - self.cursor as usize) / 8;
        assert!(words <= room, "the arena is full");
        let object = self.cursor;
        // SAFETY: there is room for that many words.
        self.cursor = unsafe { object.add(words) };
        object
    }
}

// SAFETY: nothing is moved, and nothing freed before its end: what a region frees is garbage by the
// contract of `end_temporary`.
unsafe impl<const REGION: bool> RawHeap for Bump<REGION> {
    const HEADER: usize = 0;
    type Root = Ref;

    #[inline(always)]
    fn allocate<const R: usize, const W: usize>(&mut self, refs: [Ref; R], words: [u64; W]) -> Ref {
        let object = self.take(R + W);
        // SAFETY: the object has R + W words.
        unsafe {
            object.cast::<[Ref; R]>().write(refs);
            object.add(R).cast::<[u64; W]>().write(words);
        }
        Ref(object)
    }

    fn reference_array(&mut self, length: usize) -> Ref {
        self.word_array(length)
    }

    fn word_array(&mut self, length: usize) -> Ref {
        let array = self.take(length);
        // SAFETY: it has that many words.
        unsafe { array.write_bytes(0, length) };
        Ref(array)
    }

    #[inline(always)]
    fn root(&mut self, object: Ref) -> Ref {
        object
    }

    #[inline(always)]
    fn rooted(&self, root: &Ref) -> Ref {
        *root
    }

    #[inline(always)]
    fn unroot(&mut self, root: Ref) -> Ref {
        root
    }

    #[inline(always)]
    unsafe fn store(&mut self, object: Ref, slot: usize, value: Ref) {
        // SAFETY: the caller vouches for the slot.
        unsafe { *object.0.add(slot).cast::<Ref>() = value };
    }

    #[inline(always)]
    fn begin_temporary(&mut self) -> usize {
        self.cursor as usize
    }

    #[inline(always)]
    fn end_temporary(&mut self, begin: usize) {
        if REGION {
            self.cursor = begin as *mut u64;
        }
    }

    fn collect(&mut self) {}

    fn report(&self, report: &mut Report) {
        let note = if REGION {
            "goes back after each tree or list"
        } else {
            "never frees"
        };
        report.text("note", note);
    }
}

fn main() {
    let command = Command::from_args();
    match command.plan.as_deref() {
        None | Some("bump") => run(&mut Bump::<false>::new(), command.program).finish(),
        Some("region") => run(&mut Bump::<true>::new(), command.program).finish(),
        Some(other) => panic!("no plan {other}"),
    }
}
