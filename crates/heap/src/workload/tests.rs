//! Every program on every collector gives the answer that the specification gives.

use super::large_live_heap::{OBJECTS, Size, mix};
use super::*;
use crate::collector::Collector;
use crate::config::HeapConfig;
use crate::heap::Heap;
use crate::kind::{CollectorKind, Program};

fn heap<C: Collector>() -> Heap<C> {
    let config = HeapConfig::default()
        .with_max_bytes(64 << 20)
        .with_initial_bytes(1 << 20)
        .with_nursery_bytes(256 << 10)
        .with_sanity(true);
    Heap::new(config).expect("64 MiB are enough for any collector")
}

/// The checksums of all programs, small.
struct Checksums;

impl Program for Checksums {
    type Output = Result<Vec<String>, WorkloadError>;

    fn run<C: Collector>(self) -> Self::Output {
        let scaling = scaling::run(&heap::<C>(), 2000)?;
        let table = large_live_heap::run(&heap::<C>(), 20_000)?;
        // The entries, their leaves, and the array of buckets.
        assert!(table.marking.is_none_or(|(marked, _)| marked == 20_001));
        assert!(table.live_bytes >= 10_000 * (16 + 24), "{table:?}");
        Ok(vec![
            gcbench::run(&heap::<C>(), 10)?,
            binary_trees::run(&heap::<C>(), 8)?,
            long_list::run(&heap::<C>(), 50_000)?,
            scaling.checksum,
            table.checksum,
        ])
    }
}

#[test]
fn every_collector_computes_the_same() {
    for &kind in CollectorKind::ALL {
        let checksums = kind.run(Checksums).unwrap();
        let expected = [
            // 2 * size(10) / size(d) = 132, 32, 8 trees of depth 4, 6, 8, twice; each adds its depth + 1.
            "gcbench trees=344 spine=1923 live=511 array=402a034ac65bd2ad",
            "binary-trees 8 stretch=1023 4=256:7936 6=64:8128 8=16:8176 long=511",
            "long-list 50000 sum=501249475000",
            "scaling 2000",
        ];
        assert_eq!(checksums[..4], expected, "{kind}");
        assert_eq!(checksums[4], model_of_the_table(20_000), "{kind}");
    }
}

#[test]
fn ten_million_objects_are_the_table_of_the_specification() {
    let Size {
        entries,
        bucket_bits,
    } = Size::of(OBJECTS);
    assert_eq!((entries, bucket_bits), (5_000_000, 20));
    for objects in [0, 1, 17, u64::MAX] {
        let size = Size::of(objects);
        assert!(size.entries >= 1 && (1..=28).contains(&size.bucket_bits));
    }
}

/// The large live heap with vectors instead of a heap, written from the specification.
fn model_of_the_table(objects: u64) -> String {
    struct Entry {
        key: u64,
        value: usize,
        next: Option<usize>,
    }
    let Size {
        entries,
        bucket_bits,
    } = Size::of(objects);
    let bucket = |key: u64| (key >> (64 - bucket_bits)) as usize;
    let mut heads = vec![None; 1 << bucket_bits];
    let mut table = Vec::new();
    let mut leaves = Vec::new();
    for n in 0..entries {
        let key = mix(n);
        let next = heads[bucket(key)].replace(table.len());
        leaves.push(n);
        let value = leaves.len() - 1;
        table.push(Entry { key, value, next });
    }
    // The n-th entry is the n-th of the vector: no need to search for it.
    let mut state = 0x4C69_7665_6F61_6B21_u64;
    let mut random = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(state)
    };
    let mut acc = 0u64;
    for op in 0..objects / 250 * 256 {
        let kind = random() >> 62;
        let mut pick = || (((random() >> 32) * entries) >> 32) as usize;
        match kind {
            0 => {
                let number = &mut leaves[table[pick()].value];
                *number = number.wrapping_add(op);
                acc = acc.wrapping_add(*number);
            }
            1 => {
                let (a, b) = (pick(), pick());
                let (x, y) = (table[a].value, table[b].value);
                (table[a].value, table[b].value) = (y, x);
            }
            2 => {
                leaves.push(op);
                table[pick()].value = leaves.len() - 1;
            }
            _ => {
                let s = random();
                acc = (0..16).fold(acc, |acc, k| acc.wrapping_add(s.wrapping_add(k)));
            }
        }
    }
    let mut h = 0u64;
    let mut add = |word: u64| h = (h ^ word).wrapping_mul(0x100_0000_01B3);
    for head in heads.iter().step_by(16) {
        let mut at = *head;
        while let Some(entry) = at.map(|index: usize| &table[index]) {
            add(entry.key);
            add(leaves[entry.value]);
            at = entry.next;
        }
    }
    add(acc);
    format!("large-live-heap {h:016x}")
}
