//! What the collector did, as values: one [`Collection`] for each collection, and [`Stats`] for the whole heap.
//!
//! Nothing here prints; `liveoak-report` renders these values as text, JSON and a garbage collection log.
//!
//! The life of a record:
//!
//! ```
//! use liveoak_heap::stats::{Cause, CollectionKind, Stats, Timer, Usage};
//!
//! let mut stats = Stats::new("mark-sweep");
//! let before = Usage { objects: 1000, bytes: 64_000, capacity: 1 << 20 };
//! let mut collection = stats.begin(CollectionKind::Full, Cause::Explicit, before);
//! let timer = Timer::start();
//! // ... mark and sweep, while the mutators wait ...
//! collection.marked.objects = 400;
//! collection.freed.objects = 600;
//! let after = Usage { objects: 400, bytes: 25_600, capacity: 1 << 20 };
//! stats.finish_stopped(collection, after, timer.stop());
//!
//! assert_eq!(stats.totals().collections, 1);
//! assert_eq!(stats.pauses().count(), 1);
//! ```
//!
//! A collection that runs in slices or beside the mutators keeps its record open from [`Stats::begin`] to
//! [`Stats::finish`] and hands every pause to [`Stats::pause`] as it happens. Collections may overlap, as when the
//! nursery is collected during a concurrent cycle: each has its own record.
//!
//! Invariants:
//! - the totals and the pause histogram are exact, whatever happens to the records: [`Stats`] keeps the last
//!   [`Stats::history_limit`] records, and each keeps its [`PAUSES_KEPT`] longest pauses;
//! - every pause is counted in the histogram exactly once, when it is handed in.

use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Add, AddAssign};
use std::time::{Duration, Instant};

use crate::pauses::Pauses;

/// What sort of work a collection was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CollectionKind {
    /// The nursery only, the mutators stopped.
    Minor,
    /// The whole heap, the mutators stopped.
    Full,
    /// The whole heap, in slices between the steps of the program; each slice is a pause.
    Incremental,
    /// The whole heap, by a collector thread while the mutators run; they pause for handshakes only.
    Concurrent,
    /// Reference counting: the pending decrements, and whatever they free.
    Epoch,
    /// Reference counting: the search for dead cycles among the candidates.
    Cycles,
}

impl CollectionKind {
    /// All kinds, in the order of [`CollectionKind::index`].
    pub const ALL: [CollectionKind; 6] = [
        CollectionKind::Minor,
        CollectionKind::Full,
        CollectionKind::Incremental,
        CollectionKind::Concurrent,
        CollectionKind::Epoch,
        CollectionKind::Cycles,
    ];

    /// The place of this kind in [`CollectionKind::ALL`].
    pub fn index(self) -> usize {
        self as usize
    }

    /// The name as written in reports; stable, JSON readers may rely on it.
    pub fn name(self) -> &'static str {
        match self {
            CollectionKind::Minor => "minor",
            CollectionKind::Full => "full",
            CollectionKind::Incremental => "incremental",
            CollectionKind::Concurrent => "concurrent",
            CollectionKind::Epoch => "epoch",
            CollectionKind::Cycles => "cycles",
        }
    }
}

impl fmt::Display for CollectionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Why a collection began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// No room for an object outside the nursery.
    AllocationFailure,
    /// No room for an object in the nursery.
    NurseryFull,
    /// The pacing rule said so: allocated bytes, free objects (FREENUM) or pending decrements crossed a bound.
    Threshold,
    /// The program asked for it.
    Explicit,
    /// The last attempt before the allocation fails with an out-of-memory error.
    OutOfMemory,
    /// A cycle under way was driven to its end, to finish it or to make room for another kind of collection.
    Finish,
}

impl Cause {
    /// All causes.
    pub const ALL: [Cause; 6] = [
        Cause::AllocationFailure,
        Cause::NurseryFull,
        Cause::Threshold,
        Cause::Explicit,
        Cause::OutOfMemory,
        Cause::Finish,
    ];

    /// The name as written in reports; stable, JSON readers may rely on it.
    pub fn name(self) -> &'static str {
        match self {
            Cause::AllocationFailure => "allocation failure",
            Cause::NurseryFull => "nursery full",
            Cause::Threshold => "threshold",
            Cause::Explicit => "explicit",
            Cause::OutOfMemory => "out of memory",
            Cause::Finish => "finish",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Objects and the bytes that they occupy, headers included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Number of objects.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Amount {
    /// What is left of it without `other`; never less than nothing.
    pub fn minus(self, other: Amount) -> Amount {
        Amount {
            objects: self.objects.saturating_sub(other.objects),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }
}

impl AddAssign for Amount {
    fn add_assign(&mut self, other: Amount) {
        self.objects += other.objects;
        self.bytes += other.bytes;
    }
}

/// How full the heap was at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Objects in the heap, dead ones included that no collection has found yet.
    pub objects: u64,
    /// Bytes that they occupy.
    pub bytes: u64,
    /// Bytes of memory committed to the heap.
    pub capacity: u64,
}

impl Usage {
    /// The objects, without the capacity.
    pub fn amount(self) -> Amount {
        Amount {
            objects: self.objects,
            bytes: self.bytes,
        }
    }

    /// The larger of the two in each field.
    fn max(self, other: Usage) -> Usage {
        Usage {
            objects: self.objects.max(other.objects),
            bytes: self.bytes.max(other.bytes),
            capacity: self.capacity.max(other.capacity),
        }
    }
}

/// A stretch of time by two clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Elapsed {
    /// Time on the clock on the wall.
    pub wall: Duration,
    /// CPU time used by the threads that did the work.
    pub cpu: Duration,
}

impl Add for Elapsed {
    type Output = Elapsed;

    fn add(self, other: Elapsed) -> Elapsed {
        Elapsed {
            wall: self.wall + other.wall,
            cpu: self.cpu + other.cpu,
        }
    }
}

impl AddAssign for Elapsed {
    fn add_assign(&mut self, other: Elapsed) {
        *self = *self + other;
    }
}

/// CPU time that the calling thread has used since it began; zero where the platform has no such clock (Miri).
///
/// This is a system call of some hundred nanoseconds: for pauses and collections, not for single objects.
pub fn thread_cpu_time() -> Duration {
    read_clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// CPU time that all threads of the process have used since it began; zero where the platform has no such clock.
pub fn process_cpu_time() -> Duration {
    read_clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}

fn read_clock(clock: libc::clockid_t) -> Duration {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` is a valid `timespec` that is borrowed exclusively for the call, which only writes to it.
    let status = unsafe { libc::clock_gettime(clock, &mut now) };
    if status != 0 {
        return Duration::ZERO;
    }
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// A stopwatch for wall time and for the CPU time of the thread that started it.
///
/// It stays on its thread, since the CPU clock of another one would mean nothing:
///
/// ```compile_fail,E0277
/// let timer = liveoak_heap::stats::Timer::start();
/// std::thread::spawn(move || timer.stop());
/// ```
#[derive(Debug)]
pub struct Timer {
    wall: Instant,
    cpu: Duration,
    /// Neither `Send` nor `Sync`.
    on_this_thread: PhantomData<*const ()>,
}

impl Timer {
    /// Starts both clocks.
    pub fn start() -> Timer {
        Timer {
            // The wall clock encloses the CPU clock, so that a pause is never reported as shorter than its CPU time
            // merely because reading the clock takes time.
            wall: Instant::now(),
            cpu: thread_cpu_time(),
            on_this_thread: PhantomData,
        }
    }

    /// Time since the start; the clocks run on.
    pub fn elapsed(&self) -> Elapsed {
        let cpu = thread_cpu_time().saturating_sub(self.cpu);
        let wall = self.wall.elapsed();
        Elapsed { wall, cpu }
    }

    /// Time since the start.
    pub fn stop(self) -> Elapsed {
        self.elapsed()
    }
}

/// What the mutators waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PausePhase {
    /// The collection from beginning to end.
    Whole,
    /// The roots, at the beginning of a cycle.
    InitialMark,
    /// A slice of marking.
    MarkStep,
    /// The roots once more, and what is left to mark, before sweeping.
    Remark,
    /// A slice of sweeping.
    SweepStep,
}

impl PausePhase {
    /// The name as written in reports; stable, JSON readers may rely on it.
    pub fn name(self) -> &'static str {
        match self {
            PausePhase::Whole => "whole",
            PausePhase::InitialMark => "initial mark",
            PausePhase::MarkStep => "mark step",
            PausePhase::Remark => "remark",
            PausePhase::SweepStep => "sweep step",
        }
    }
}

impl fmt::Display for PausePhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// One stretch of time in which mutators waited for the collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// What they waited for.
    pub phase: PausePhase,
    /// When it began, since the heap was created.
    pub start: Duration,
    /// How long it took.
    pub elapsed: Elapsed,
    /// Bytes in use when it began.
    pub bytes_before: u64,
    /// Bytes in use when it ended.
    pub bytes_after: u64,
}

/// What a collector thread did while the mutators ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ConcurrentPhase {
    /// Marking.
    Mark,
    /// Sweeping.
    Sweep,
}

impl ConcurrentPhase {
    /// The name as written in reports; stable, JSON readers may rely on it.
    pub fn name(self) -> &'static str {
        match self {
            ConcurrentPhase::Mark => "mark",
            ConcurrentPhase::Sweep => "sweep",
        }
    }
}

impl fmt::Display for ConcurrentPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// One stretch of work beside the running mutators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConcurrentWork {
    /// What was done.
    pub phase: ConcurrentPhase,
    /// When it began, since the heap was created.
    pub start: Duration,
    /// How long it took.
    pub elapsed: Elapsed,
}

/// How many pauses a record keeps one by one. An incremental cycle over a large heap has hundreds of thousands.
pub const PAUSES_KEPT: usize = 64;

/// The pauses of one collection: count and sum of all, and the longest [`PAUSES_KEPT`] one by one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CollectionPauses {
    /// In the order in which they happened.
    longest: Vec<Pause>,
    count: u64,
    total: Elapsed,
}

impl CollectionPauses {
    fn record(&mut self, pause: Pause) {
        self.count += 1;
        self.total += pause.elapsed;
        if self.longest.len() == PAUSES_KEPT {
            let shortest = self.shortest_kept();
            if self.longest[shortest].elapsed.wall >= pause.elapsed.wall {
                return;
            }
            self.longest.remove(shortest);
        }
        self.longest.push(pause);
    }

    fn shortest_kept(&self) -> usize {
        let places = 0..self.longest.len();
        places
            .min_by_key(|&place| self.longest[place].elapsed.wall)
            .expect("asked only when the list is full")
    }

    /// The longest pauses by wall time, at most [`PAUSES_KEPT`], in the order in which they happened.
    pub fn longest(&self) -> &[Pause] {
        &self.longest
    }

    /// How many pauses there were.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The sum of all of them.
    pub fn total(&self) -> Elapsed {
        self.total
    }

    /// The longest wait by wall time; zero if there was none.
    pub fn max_wall(&self) -> Duration {
        let walls = self.longest.iter().map(|pause| pause.elapsed.wall);
        walls.max().unwrap_or_default()
    }
}

/// The record of one collection. [`Stats::begin`] opens it, [`Stats::finish`] closes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collection {
    /// Collections are numbered from 0 in the order in which they begin.
    pub id: u64,
    /// What sort of work it was.
    pub kind: CollectionKind,
    /// Why it began.
    pub cause: Cause,
    /// The collector's name, as in `--gc`.
    pub collector: &'static str,
    /// When it began, since the heap was created.
    pub start: Duration,
    /// The heap when it began.
    pub before: Usage,
    /// The heap when it ended; equal to `before` until then.
    pub after: Usage,
    /// What was found reachable and left in its place.
    pub marked: Amount,
    /// What was found reachable and moved.
    pub copied: Amount,
    /// What was found dead. Not always `before` minus `after`: mutators may allocate in between.
    pub freed: Amount,
    /// Wall time from beginning to end, and the CPU time that the collector used in it. For a cycle in slices, the
    /// wall time includes the mutators' turns, and the CPU time does not.
    pub elapsed: Elapsed,
    /// The part of the CPU time that went into marking; zero if the collector does not time it apart from the rest.
    pub marking: Duration,
    /// What was done while the mutators ran.
    pub concurrent: Vec<ConcurrentWork>,
    pauses: CollectionPauses,
}

impl Collection {
    /// The pauses that belong to it. They are added by [`Stats::pause`], which counts them for the heap as well.
    pub fn pauses(&self) -> &CollectionPauses {
        &self.pauses
    }

    /// When it ended, since the heap was created.
    pub fn end(&self) -> Duration {
        self.start + self.elapsed.wall
    }
}

/// Sums over finished collections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// How many.
    pub collections: u64,
    /// Their time. Overlapping collections count twice on the wall, and cycles in slices count whole.
    pub elapsed: Elapsed,
    /// The time that mutators waited in them.
    pub paused: Elapsed,
    /// What they marked.
    pub marked: Amount,
    /// What they moved.
    pub copied: Amount,
    /// What they freed.
    pub freed: Amount,
}

impl Totals {
    fn count(&mut self, collection: &Collection) {
        *self += Totals {
            collections: 1,
            elapsed: collection.elapsed,
            paused: collection.pauses.total,
            marked: collection.marked,
            copied: collection.copied,
            freed: collection.freed,
        };
    }
}

impl AddAssign for Totals {
    fn add_assign(&mut self, other: Totals) {
        self.collections += other.collections;
        self.elapsed += other.elapsed;
        self.paused += other.paused;
        self.marked += other.marked;
        self.copied += other.copied;
        self.freed += other.freed;
    }
}

/// How many records [`Stats`] keeps if it is not told otherwise.
pub const DEFAULT_HISTORY: usize = 1024;

/// The statistics of one heap.
#[derive(Clone, Debug)]
pub struct Stats {
    collector: &'static str,
    created: Instant,
    next_id: u64,
    allocated: Amount,
    stalls: u64,
    peak: Usage,
    by_kind: [Totals; CollectionKind::ALL.len()],
    pauses: Pauses,
    history: VecDeque<Collection>,
    history_limit: usize,
}

impl Stats {
    /// Statistics of a heap that is created now and collected by `collector` (a name as in `--gc`).
    pub fn new(collector: &'static str) -> Stats {
        Stats {
            collector,
            created: Instant::now(),
            next_id: 0,
            allocated: Amount::default(),
            stalls: 0,
            peak: Usage::default(),
            by_kind: Default::default(),
            pauses: Pauses::new(),
            history: VecDeque::new(),
            history_limit: DEFAULT_HISTORY,
        }
    }

    /// The same, keeping the last `limit` records: 0 for none, `usize::MAX` for all, as a complete log needs.
    pub fn with_history(mut self, limit: usize) -> Stats {
        self.history_limit = limit;
        self.forget_oldest();
        self
    }

    /// Time since the heap was created.
    pub fn uptime(&self) -> Duration {
        self.created.elapsed()
    }

    /// Counts objects allocated. Meant for whole batches: a mutator's buffer at a safepoint, not every object.
    pub fn allocate(&mut self, allocated: Amount) {
        self.allocated += allocated;
    }

    /// Counts an allocation that had to wait for the collector.
    pub fn stall(&mut self) {
        self.stalls += 1;
    }

    /// Opens the record of a collection that begins now.
    pub fn begin(&mut self, kind: CollectionKind, cause: Cause, before: Usage) -> Collection {
        self.begin_at(self.uptime(), kind, cause, before)
    }

    /// Opens the record of a collection that began at `start`, counted from the creation of the heap.
    pub fn begin_at(
        &mut self,
        start: Duration,
        kind: CollectionKind,
        cause: Cause,
        before: Usage,
    ) -> Collection {
        let id = self.next_id;
        self.next_id += 1;
        self.peak = self.peak.max(before);
        Collection {
            id,
            kind,
            cause,
            collector: self.collector,
            start,
            before,
            after: before,
            marked: Amount::default(),
            copied: Amount::default(),
            freed: Amount::default(),
            elapsed: Elapsed::default(),
            marking: Duration::ZERO,
            concurrent: Vec::new(),
            pauses: CollectionPauses::default(),
        }
    }

    /// Counts a pause for the heap and for the collection that it belongs to. When several threads wait for the same
    /// thing, each wait is a pause.
    pub fn pause(&mut self, collection: &mut Collection, pause: Pause) {
        self.pauses.record(pause.elapsed);
        collection.pauses.record(pause);
    }

    /// Closes a record: counts it in the totals and keeps it among the last ones.
    pub fn finish(&mut self, mut collection: Collection, after: Usage, elapsed: Elapsed) {
        collection.after = after;
        collection.elapsed = elapsed;
        self.peak = self.peak.max(after);
        self.by_kind[collection.kind.index()].count(&collection);
        self.history.push_back(collection);
        self.forget_oldest();
    }

    /// Closes the record of a collection during which the mutators were stopped from beginning to end: its time is
    /// its pause.
    pub fn finish_stopped(&mut self, mut collection: Collection, after: Usage, elapsed: Elapsed) {
        let pause = Pause {
            phase: PausePhase::Whole,
            start: collection.start,
            elapsed,
            bytes_before: collection.before.bytes,
            bytes_after: after.bytes,
        };
        self.pause(&mut collection, pause);
        self.finish(collection, after, elapsed);
    }

    fn forget_oldest(&mut self) {
        let excess = self.history.len().saturating_sub(self.history_limit);
        self.history.drain(..excess);
    }

    /// The collector's name, as in `--gc`.
    pub fn collector(&self) -> &'static str {
        self.collector
    }

    /// Everything allocated so far, as far as it was counted.
    pub fn allocated(&self) -> Amount {
        self.allocated
    }

    /// How often an allocation had to wait for the collector: for a collection, or for a step of one.
    pub fn stalls(&self) -> u64 {
        self.stalls
    }

    /// The fullest that the heap was seen at the beginning or end of a collection, each field by itself.
    pub fn peak(&self) -> Usage {
        self.peak
    }

    /// Sums over all finished collections, forgotten ones included.
    pub fn totals(&self) -> Totals {
        let mut all = Totals::default();
        for totals in self.by_kind {
            all += totals;
        }
        all
    }

    /// Sums over the finished collections of one kind, forgotten ones included.
    pub fn totals_of(&self, kind: CollectionKind) -> Totals {
        self.by_kind[kind.index()]
    }

    /// All pauses so far, those of unfinished collections included.
    pub fn pauses(&self) -> &Pauses {
        &self.pauses
    }

    /// The last finished collections, in the order in which they ended.
    pub fn history(&self) -> impl ExactSizeIterator<Item = &Collection> + DoubleEndedIterator {
        self.history.iter()
    }

    /// How many records are kept.
    pub fn history_limit(&self) -> usize {
        self.history_limit
    }

    /// How many finished collections have no record any more.
    pub fn forgotten(&self) -> u64 {
        self.totals().collections - self.history.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(bytes: u64) -> Usage {
        Usage {
            objects: bytes / 16,
            bytes,
            capacity: 4096,
        }
    }

    fn ms(wall: u64, cpu: u64) -> Elapsed {
        Elapsed {
            wall: Duration::from_millis(wall),
            cpu: Duration::from_millis(cpu),
        }
    }

    fn step(start: u64, wall: u64) -> Pause {
        Pause {
            phase: PausePhase::MarkStep,
            start: Duration::from_millis(start),
            elapsed: ms(wall, wall),
            bytes_before: 0,
            bytes_after: 0,
        }
    }

    #[test]
    fn kinds_know_their_place() {
        for (place, kind) in CollectionKind::ALL.into_iter().enumerate() {
            assert_eq!(kind.index(), place);
        }
    }

    #[test]
    fn names_can_be_padded() {
        assert_eq!(format!("[{:>6}]", CollectionKind::Full), "[  full]");
        assert_eq!(format!("[{:14}]", Cause::OutOfMemory), "[out of memory ]");
    }

    #[test]
    fn a_stopped_collection_is_one_pause() {
        let mut stats = Stats::new("semispace");
        let mut collection =
            stats.begin(CollectionKind::Full, Cause::AllocationFailure, usage(1600));
        collection.copied = Amount {
            objects: 25,
            bytes: 400,
        };
        stats.finish_stopped(collection, usage(400), ms(3, 2));

        let [record] = stats.history().collect::<Vec<_>>()[..] else {
            panic!("one record")
        };
        assert_eq!(record.pauses().count(), 1);
        assert_eq!(record.pauses().longest()[0].phase, PausePhase::Whole);
        assert_eq!(
            (
                record.pauses().longest()[0].bytes_before,
                record.pauses().longest()[0].bytes_after
            ),
            (1600, 400)
        );
        assert_eq!(record.end(), record.start + Duration::from_millis(3));
        assert_eq!(stats.pauses().wall().max(), Duration::from_millis(3));
        assert_eq!(stats.pauses().cpu().max(), Duration::from_millis(2));
        assert_eq!(stats.totals().paused, ms(3, 2));
        assert_eq!(stats.totals_of(CollectionKind::Full).copied.bytes, 400);
        assert_eq!(stats.totals_of(CollectionKind::Minor), Totals::default());
        assert_eq!(stats.peak(), usage(1600));
    }

    #[test]
    fn overlapping_collections_are_numbered_by_their_beginning() {
        let mut stats = Stats::new("concurrent");
        let cycle = stats.begin(CollectionKind::Concurrent, Cause::Threshold, usage(1600));
        let minor = stats.begin(CollectionKind::Minor, Cause::NurseryFull, usage(1600));
        stats.finish_stopped(minor, usage(800), ms(1, 1));
        stats.finish(cycle, usage(400), ms(10, 9));
        assert_eq!(
            stats.history().map(|record| record.id).collect::<Vec<_>>(),
            [1, 0]
        );
        assert_eq!(stats.pauses().count(), 1);
    }

    #[test]
    fn totals_outlive_the_records() {
        let mut stats = Stats::new("generational").with_history(3);
        for _ in 0..10 {
            let mut minor = stats.begin(CollectionKind::Minor, Cause::NurseryFull, usage(160));
            minor.freed = Amount {
                objects: 9,
                bytes: 144,
            };
            stats.finish_stopped(minor, usage(16), ms(1, 1));
        }
        assert_eq!(
            stats.history().map(|record| record.id).collect::<Vec<_>>(),
            [7, 8, 9]
        );
        assert_eq!(stats.forgotten(), 7);
        assert_eq!(stats.totals().collections, 10);
        assert_eq!(
            stats.totals().freed,
            Amount {
                objects: 90,
                bytes: 1440
            }
        );
        assert_eq!(stats.pauses().count(), 10);
        assert_eq!(stats.with_history(0).forgotten(), 10);
    }

    #[test]
    fn a_record_keeps_the_longest_pauses_in_order() {
        let mut stats = Stats::new("incremental");
        let mut cycle = stats.begin(CollectionKind::Incremental, Cause::Threshold, usage(1600));
        // 7 has no common factor with 1000: every length from 1 to 1000 occurs once, well shuffled.
        let lengths = (0..1000).map(|step| step * 7 % 1000 + 1);
        for (start, length) in lengths.enumerate() {
            stats.pause(&mut cycle, step(start as u64, length));
        }
        let kept = cycle.pauses().longest();
        let mut walls: Vec<_> = kept
            .iter()
            .map(|pause| pause.elapsed.wall.as_millis())
            .collect();
        walls.sort_unstable();
        assert_eq!(
            walls,
            (1001 - PAUSES_KEPT as u128..=1000).collect::<Vec<_>>()
        );
        assert!(kept.is_sorted_by_key(|pause| pause.start));
        assert_eq!(cycle.pauses().count(), 1000);
        assert_eq!(cycle.pauses().total(), ms(500_500, 500_500));
        assert_eq!(cycle.pauses().max_wall(), Duration::from_secs(1));
        assert_eq!(
            stats.pauses().count(),
            1000,
            "counted before the cycle has ended"
        );
    }

    #[test]
    fn waiting_costs_wall_time_and_working_costs_cpu_time() {
        let timer = Timer::start();
        std::thread::sleep(Duration::from_millis(20));
        let slept = timer.stop();
        assert!(slept.wall >= Duration::from_millis(20));
        assert!(slept.cpu < slept.wall);

        let timer = Timer::start();
        while !cfg!(miri) && timer.elapsed().cpu < Duration::from_millis(2) {}
        let worked = timer.stop();
        assert!(worked.wall >= worked.cpu);
    }
}
