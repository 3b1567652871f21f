//! Warm memory for every run.
//!
//! In a virtual machine the host may back a page only when it is first touched, and take it back some seconds after it
//! is freed (free page reporting). Then fresh memory costs ten times more or not, by what ran a moment ago, and a
//! contender with a large heap is slow by accident. So before every run a child of the harness touches as much memory
//! as a contender may need and ends; the contender gets the same pages. It is a child, since the peak memory of a
//! process that forks shows in that of its children.

use std::process::Command;

/// The hidden flag of the child.
pub(crate) const FLAG: &str = "--warm-memory";

const BYTES: usize = 1 << 30;
const PAGE: usize = 4096;

/// Starts the child and waits for it; when that fails the run is only colder.
pub(crate) fn warm() {
    if let Ok(own) = std::env::current_exe() {
        let _ = Command::new(own).arg(FLAG).status();
    }
}

/// The child's work.
pub(crate) fn touch() {
    // SAFETY: a new anonymous mapping touches no memory of ours; the advice and the writes are within it.
    unsafe {
        let start = libc::mmap(
            std::ptr::null_mut(),
            BYTES,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        if start == libc::MAP_FAILED {
            return;
        }
        libc::madvise(start, BYTES, libc::MADV_HUGEPAGE);
        for offset in (0..BYTES).step_by(PAGE) {
            start.cast::<u8>().add(offset).write_volatile(1);
        }
    }
}
