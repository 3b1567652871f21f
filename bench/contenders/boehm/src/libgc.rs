//! The few functions of libgc that are used, with safe faces.

use bench_programs::clock;
use std::ffi::{c_int, c_ulong, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

// `GC_EventType` of gc.h.
const PRE_STOP_WORLD: c_int = 6;
const POST_START_WORLD: c_int = 9;

// SAFETY: the declarations of gc.h.
unsafe extern "C" {
    fn GC_init();
    fn GC_malloc(bytes: usize) -> *mut c_void;
    fn GC_malloc_atomic(bytes: usize) -> *mut c_void;
    fn GC_gcollect();
    fn GC_get_gc_no() -> c_ulong;
    fn GC_set_max_heap_size(bytes: usize);
    fn GC_set_on_collection_event(callback: extern "C" fn(c_int));
}

static STOPPED_AT: AtomicU64 = AtomicU64::new(0);
static LONGEST: AtomicU64 = AtomicU64::new(0);

/// Starts the collector; a limit of 0 is none.
pub(crate) fn start(limit: usize) {
    // SAFETY: called once, before any other function, from the main thread.
    unsafe {
        GC_init();
        GC_set_max_heap_size(limit);
        GC_set_on_collection_event(watch);
    }
}

/// Memory that is scanned for references, zeroed.
#[inline(always)]
pub(crate) fn allocate(bytes: usize) -> *mut u64 {
    // SAFETY: the collector is started.
    checked(unsafe { GC_malloc(bytes) })
}

/// Memory without references, with any contents.
#[inline(always)]
pub(crate) fn allocate_atomic(bytes: usize) -> *mut u64 {
    // SAFETY: the collector is started.
    checked(unsafe { GC_malloc_atomic(bytes) })
}

#[inline(always)]
fn checked(object: *mut c_void) -> *mut u64 {
    assert!(!object.is_null(), "out of memory");
    object.cast()
}

/// A full collection.
pub(crate) fn collect() {
    // SAFETY: the collector is started.
    unsafe { GC_gcollect() }
}

/// How many collections there were.
pub(crate) fn collections() -> u64 {
    // SAFETY: the collector is started.
    unsafe { GC_get_gc_no() }
}

/// The longest time that the world was stopped, by the wall clock (marking may use a helper thread).
pub(crate) fn longest_pause_us() -> f64 {
    LONGEST.load(Ordering::Relaxed) as f64 / 1e3
}

extern "C" fn watch(event: c_int) {
    let now = clock::wall().as_nanos() as u64;
    match event {
        PRE_STOP_WORLD => STOPPED_AT.store(now, Ordering::Relaxed),
        POST_START_WORLD => {
            let pause = now - STOPPED_AT.load(Ordering::Relaxed);
            LONGEST.fetch_max(pause, Ordering::Relaxed);
        }
        _ => {}
    }
}
