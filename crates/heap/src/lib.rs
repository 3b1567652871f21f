//! Liveoak's heap: memory that a language implementation can embed, with a family of collectors.
#![deny(unsafe_op_in_unsafe_fn)]

pub mod collector;
pub mod collectors;
pub mod config;
pub mod error;
pub mod header;
pub mod heap;
pub mod kind;
pub mod memory;
pub mod mutator;
pub mod object;
pub mod observe;
pub mod pauses;
pub mod reference;
pub mod roots;
pub mod shape;
pub mod space;
pub mod stats;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod testing;
pub mod trace;
pub mod verify;
pub mod weak;

/// Takes a lock; a panic of another thread while it held the lock does not matter, since what the
/// locks of this crate guard is consistent between any two statements that can panic.
pub(crate) fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}
