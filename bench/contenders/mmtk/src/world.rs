//! Stopping the world, which is one mutator: it asks for a collection and parks; the worker waits until it has.

use bench_programs::clock;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

/// The only world.
pub(crate) static WORLD: World = World {
    state: Mutex::new(State {
        parked: false,
        collections: 0,
        longest: Duration::ZERO,
    }),
    changed: Condvar::new(),
};

/// The handshake between the mutator and the collector.
pub(crate) struct World {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    parked: bool,
    collections: u64,
    longest: Duration,
}

impl World {
    /// The mutator's side: parks until the collection is over. Its whole stay here is a pause.
    pub(crate) fn park(&self) {
        let begin = clock::wall();
        let mut state = self.state.lock().expect("no panic while locked");
        let collection = state.collections;
        state.parked = true;
        self.changed.notify_all();
        while state.collections == collection {
            state = self.changed.wait(state).expect("no panic while locked");
        }
        state.longest = state.longest.max(clock::wall() - begin);
    }

    /// The collector's side: waits until the mutator has parked.
    pub(crate) fn await_stop(&self) {
        let mut state = self.state.lock().expect("no panic while locked");
        while !state.parked {
            state = self.changed.wait(state).expect("no panic while locked");
        }
    }

    /// The collector's side: lets the mutator go on.
    pub(crate) fn resume(&self) {
        let mut state = self.state.lock().expect("no panic while locked");
        state.parked = false;
        state.collections += 1;
        self.changed.notify_all();
    }

    /// How many collections there were.
    pub(crate) fn collections(&self) -> u64 {
        self.state
            .lock()
            .expect("no panic while locked")
            .collections
    }

    /// The longest pause, by the wall clock.
    pub(crate) fn longest_pause(&self) -> Duration {
        self.state.lock().expect("no panic while locked").longest
    }
}
