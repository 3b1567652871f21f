//! How long the program had to wait: a histogram of pauses in constant memory.
//!
//! A run can have millions of pauses, and the interesting ones are the rare long ones, so neither a list of them
//! nor an average will do. [`Histogram`] is log-linear, after Gil Tene's HdrHistogram: values below 64 ns have a
//! bucket each; from there every octave (2ⁿ ≤ v < 2ⁿ⁺¹) is cut into 32 buckets of equal width. All of `u64`
//! nanoseconds is covered, so nothing is ever out of range, by 1,920 counters (15 KiB).
//!
//! **Precision.** A bucket is at most 1/32 of its lower bound wide, and a quantile answers with its bucket's upper
//! bound: for the true nearest-rank quantile `t`, the answer `a` satisfies `t ≤ a ≤ t + t/32`. It errs by at most
//! 3.2 %, and never in the collector's favour. Count, total, mean, minimum and maximum are exact.
//!
//! [`Pauses`] keeps two of them, for wall time and for the CPU time of the pausing thread. The first is what the
//! program felt, the second is what the collector is to blame for: on a loaded machine they differ by what the
//! operating system gave to others.

use std::fmt;
use std::time::Duration;

use crate::stats::Elapsed;

/// log₂ of the number of buckets in an octave.
const PRECISION_BITS: u32 = 5;
/// Buckets in an octave.
const OCTAVE: u64 = 1 << PRECISION_BITS;
/// One run of single-value buckets for values below [`OCTAVE`], then one octave for each higher leading bit.
const BUCKETS: usize = (u64::BITS - PRECISION_BITS + 1) as usize * OCTAVE as usize;

/// The bucket that counts `value`.
fn bucket_of(value: u64) -> usize {
    if value < OCTAVE {
        return value as usize;
    }
    let shift = value.ilog2() - PRECISION_BITS;
    // The leading bit is always set in `value >> shift`, so it already contributes the first run of buckets.
    shift as usize * OCTAVE as usize + (value >> shift) as usize
}

/// The largest value that `bucket` counts.
fn upper_bound(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < OCTAVE {
        return bucket;
    }
    let shift = bucket / OCTAVE - 1;
    let leading = bucket % OCTAVE + OCTAVE;
    (leading << shift) | ((1 << shift) - 1)
}

/// Durations longer than 584 years count as 584 years.
fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// A log-linear histogram of durations; see the [module](self) for its precision.
///
/// ```
/// use liveoak_heap::pauses::Histogram;
/// use std::time::Duration;
///
/// let mut pauses = Histogram::new();
/// for ms in 1..=1000 {
///     pauses.record(Duration::from_millis(ms));
/// }
/// assert_eq!(pauses.max(), Duration::from_millis(1000));
/// assert!(pauses.p50() >= Duration::from_millis(500));
/// assert!(pauses.p50() <= Duration::from_millis(516));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Histogram {
    counts: Box<[u64; BUCKETS]>,
    count: u64,
    /// Sum in nanoseconds; 2⁶⁴ values of 2⁶⁴ ns fit.
    total: u128,
    /// Meaningful only if `count > 0`.
    min: u64,
    max: u64,
}

impl Histogram {
    /// An empty histogram.
    pub fn new() -> Self {
        Histogram {
            counts: Box::new([0; BUCKETS]),
            count: 0,
            total: 0,
            min: u64::MAX,
            max: 0,
        }
    }

    /// Counts one duration.
    pub fn record(&mut self, duration: Duration) {
        let value = nanoseconds(duration);
        self.counts[bucket_of(value)] += 1;
        self.count += 1;
        self.total += u128::from(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Counts everything that `other` has counted: the same as recording its durations here, one by one.
    pub fn merge(&mut self, other: &Histogram) {
        for (mine, theirs) in self.counts.iter_mut().zip(other.counts.iter()) {
            *mine += theirs;
        }
        self.count += other.count;
        self.total += other.total;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// How many durations were recorded.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The sum of all durations, exact.
    pub fn total(&self) -> Duration {
        let seconds = u64::try_from(self.total / 1_000_000_000).unwrap_or(u64::MAX);
        Duration::new(seconds, (self.total % 1_000_000_000) as u32)
    }

    /// The arithmetic mean, exact to the nanosecond below; zero if nothing was recorded.
    pub fn mean(&self) -> Duration {
        let mean = self.total.checked_div(u128::from(self.count)).unwrap_or(0);
        Duration::from_nanos(mean as u64)
    }

    /// The shortest duration, exact; zero if nothing was recorded.
    pub fn min(&self) -> Duration {
        Duration::from_nanos(if self.is_empty() { 0 } else { self.min })
    }

    /// The longest duration, exact; zero if nothing was recorded.
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.max)
    }

    /// The nearest-rank quantile: the smallest duration such that at least `per_mille` thousandths of all recorded
    /// durations are no longer; zero if nothing was recorded. Values above 1000 mean 1000.
    ///
    /// In thousandths, because 0.999 × 1000 rounded up is a question that floating point may answer with 1000.
    pub fn quantile(&self, per_mille: u16) -> Duration {
        if self.is_empty() {
            return Duration::ZERO;
        }
        let per_mille = u128::from(per_mille.min(1000));
        let rank = (u128::from(self.count) * per_mille).div_ceil(1000).max(1);
        let mut seen = 0;
        for (bucket, &count) in self.counts.iter().enumerate() {
            seen += u128::from(count);
            if seen >= rank {
                return Duration::from_nanos(upper_bound(bucket).min(self.max));
            }
        }
        unreachable!(
            "the buckets hold {seen} durations, {} were counted",
            self.count
        )
    }

    /// The median.
    pub fn p50(&self) -> Duration {
        self.quantile(500)
    }

    /// The 99th percentile.
    pub fn p99(&self) -> Duration {
        self.quantile(990)
    }

    /// The 99.9th percentile.
    pub fn p99_9(&self) -> Duration {
        self.quantile(999)
    }

    /// The buckets that are not empty, shortest first: the longest duration that each can hold, and its count.
    pub fn buckets(&self) -> impl Iterator<Item = (Duration, u64)> + '_ {
        let counted = self
            .counts
            .iter()
            .enumerate()
            .filter(|&(_, &count)| count > 0);
        counted.map(|(bucket, &count)| (Duration::from_nanos(upper_bound(bucket)), count))
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

/// Two thousand counters are of no use in a failed assertion; the answers are.
impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Histogram")
            .field("count", &self.count())
            .field("total", &self.total())
            .field("p50", &self.p50())
            .field("p99", &self.p99())
            .field("p99_9", &self.p99_9())
            .field("max", &self.max())
            .finish()
    }
}

/// The pauses of a heap, by wall time and by CPU time.
///
/// Invariant: both histograms have the same count, because a pause is recorded in both at once. They are separate
/// distributions: the pause at the 99th percentile of one need not be the one at the 99th percentile of the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pauses {
    wall: Histogram,
    cpu: Histogram,
}

impl Pauses {
    /// No pauses yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts one pause.
    pub fn record(&mut self, pause: Elapsed) {
        self.wall.record(pause.wall);
        self.cpu.record(pause.cpu);
    }

    /// Counts everything that `other` has counted.
    pub fn merge(&mut self, other: &Pauses) {
        self.wall.merge(&other.wall);
        self.cpu.merge(&other.cpu);
    }

    /// How many pauses there were.
    pub fn count(&self) -> u64 {
        self.wall.count()
    }

    /// Time on the clock on the wall: what the program felt.
    pub fn wall(&self) -> &Histogram {
        &self.wall
    }

    /// CPU time of the pausing thread: what the collector used of it.
    pub fn cpu(&self) -> &Histogram {
        &self.cpu
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition of the nearest-rank quantile, on all the values.
    fn oracle(sorted: &[u64], per_mille: u64) -> u64 {
        *sorted
            .iter()
            .enumerate()
            .find(|(index, _)| {
                (*index as u128 + 1) * 1000 >= sorted.len() as u128 * u128::from(per_mille)
            })
            .map(|(_, value)| value)
            .expect("the last value has all values at or below it")
    }

    fn histogram(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        for &value in values {
            histogram.record(Duration::from_nanos(value));
        }
        histogram
    }

    /// Values of every magnitude: uniform `u64`s would nearly all lie in the last three octaves.
    fn any_nanoseconds() -> impl Strategy<Value = u64> {
        (any::<u64>(), 0..u64::BITS).prop_map(|(bits, shift)| bits >> shift)
    }

    #[test]
    fn buckets_tile_the_range() {
        assert_eq!(bucket_of(0), 0);
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
        assert_eq!(upper_bound(BUCKETS - 1), u64::MAX);
        for bucket in 0..BUCKETS - 1 {
            let last = upper_bound(bucket);
            assert_eq!(bucket_of(last), bucket);
            assert_eq!(bucket_of(last + 1), bucket + 1);
        }
    }

    #[test]
    fn an_empty_histogram_answers_zero() {
        let empty = Histogram::new();
        assert!(empty.is_empty());
        for answer in [
            empty.p50(),
            empty.p99_9(),
            empty.min(),
            empty.max(),
            empty.mean(),
            empty.total(),
        ] {
            assert_eq!(answer, Duration::ZERO);
        }
    }

    #[test]
    fn one_long_pause_in_a_thousand_shows_beyond_p99_9_only() {
        let mut values = vec![10; 999];
        values.push(5_000_000);
        let pauses = histogram(&values);
        assert_eq!(pauses.p99_9(), Duration::from_nanos(10));
        assert_eq!(pauses.quantile(1000), Duration::from_millis(5));
        assert_eq!(pauses.max(), Duration::from_millis(5));
    }

    #[test]
    fn a_pause_counts_in_both_clocks() {
        let mut pauses = Pauses::new();
        pauses.record(Elapsed {
            wall: Duration::from_millis(3),
            cpu: Duration::from_millis(2),
        });
        let mut twice = pauses.clone();
        twice.merge(&pauses);
        assert_eq!(twice.count(), 2);
        assert_eq!(twice.wall().total(), Duration::from_millis(6));
        assert_eq!(twice.cpu().max(), Duration::from_millis(2));
    }

    #[test]
    fn the_absurdly_long_is_counted_not_lost() {
        let mut pauses = Histogram::new();
        pauses.record(Duration::MAX);
        pauses.record(Duration::MAX);
        assert_eq!(pauses.count(), 2);
        assert_eq!(pauses.max(), Duration::from_nanos(u64::MAX));
        assert_eq!(pauses.total(), 2 * Duration::from_nanos(u64::MAX));
    }

    proptest! {
        #[test]
        fn agrees_with_a_sorted_vector(mut values in prop::collection::vec(any_nanoseconds(), 1..400), per_mille in 0u16..=1000) {
            let pauses = histogram(&values);
            values.sort_unstable();
            for per_mille in [per_mille, 500, 990, 999, 1000] {
                let truth = oracle(&values, u64::from(per_mille));
                let answer = pauses.quantile(per_mille).as_nanos() as u64;
                prop_assert!(truth <= answer, "{per_mille}: {answer} is less than {truth}");
                prop_assert!(answer - truth <= truth / 32, "{per_mille}: {answer} is far from {truth}");
            }
            let total: u128 = values.iter().map(|&value| u128::from(value)).sum();
            prop_assert_eq!(pauses.count(), values.len() as u64);
            prop_assert_eq!(pauses.total().as_nanos(), total);
            prop_assert_eq!(pauses.mean().as_nanos(), total / values.len() as u128);
            prop_assert_eq!(pauses.min().as_nanos(), u128::from(values[0]));
            prop_assert_eq!(pauses.max().as_nanos(), u128::from(values[values.len() - 1]));
            prop_assert_eq!(pauses.buckets().map(|(_, count)| count).sum::<u64>(), pauses.count());
        }

        #[test]
        fn merging_is_recording_everything(
            left in prop::collection::vec(any_nanoseconds(), 0..100),
            right in prop::collection::vec(any_nanoseconds(), 0..100),
        ) {
            let mut merged = histogram(&left);
            merged.merge(&histogram(&right));
            prop_assert_eq!(merged, histogram(&[left, right].concat()));
        }
    }
}
