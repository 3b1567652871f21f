//! The Boehm-Demers-Weiser collector (Debian's `libgc`), called as its manual says: `GC_malloc`, and
//! `GC_malloc_atomic` for objects without references. It finds roots itself, in registers, stack and globals; no
//! barrier, no header. Its growth policy is the default one; `--heap` is only a limit.

mod libgc;

use bench_programs::command::Command;
use bench_programs::raw::{RawHeap, Ref, run};
use bench_programs::report::Report;

struct Boehm;

// SAFETY: the collector keeps everything alive whose address is in registers, on the stack or in the heap, and moves
// nothing.
unsafe impl RawHeap for Boehm {
    const HEADER: usize = 0;
    type Root = Ref;

    #[inline(always)]
    fn allocate<const R: usize, const W: usize>(&mut self, refs: [Ref; R], words: [u64; W]) -> Ref {
        let object = if R == 0 {
            libgc::allocate_atomic((R + W) * 8)
        } else {
            libgc::allocate((R + W) * 8)
        };
        // SAFETY: the object has R + W words.
        unsafe {
            object.cast::<[Ref; R]>().write(refs);
            object.add(R).cast::<[u64; W]>().write(words);
        }
        Ref(object)
    }

    fn reference_array(&mut self, length: usize) -> Ref {
        Ref(libgc::allocate(length * 8))
    }

    fn word_array(&mut self, length: usize) -> Ref {
        let array = libgc::allocate_atomic(length * 8);
        // SAFETY: it has that many words; atomic objects come with any contents.
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

    fn collect(&mut self) {
        libgc::collect();
    }

    fn report(&self, report: &mut Report) {
        report.number("max_pause_us", libgc::longest_pause_us());
        let note = format!("{} collections, default growth", libgc::collections());
        report.text("note", &note);
    }
}

fn main() {
    let command = Command::from_args();
    libgc::start(command.heap.unwrap_or(0));
    run(&mut Boehm, command.program).finish()
}
