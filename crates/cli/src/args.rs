//! The flags, as data: what is parsed and what `--help` says come from here.

use crate::size;
use crate::workload::{Api, Program};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use liveoak_heap::config::{HeapConfig, IncrementalSettings};
use liveoak_heap::error::HeapError;
use liveoak_heap::kind::CollectorKind;
use std::path::PathBuf;

/// Garbage collectors for language implementers: run them, measure them, compare them.
#[derive(Debug, Parser)]
#[command(name = "liveoak", version, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Bench(Box<BenchArguments>),
    Collectors(CollectorsArguments),
}

/// List the collectors.
#[derive(Debug, Args)]
pub(crate) struct CollectorsArguments {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Run a benchmark program on a collector, or compare collectors.
///
/// The programs are specified in bench/PROGRAMS.md. With `all` as the program or as the collector, each pair runs in a
/// process of its own, and one table shows CPU time, peak memory and the longest pause.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  liveoak bench gcbench --gc generational --stats
  liveoak bench large-live-heap --gc mark-sweep --gc-log gc.log
  liveoak bench binary-trees --gc all --depth 18
  liveoak bench all --gc all --json")]
pub(crate) struct BenchArguments {
    /// The program.
    #[arg(value_name = "PROGRAM", value_parser = program_parser())]
    pub(crate) program: Selection<Program>,

    /// The collector (see `liveoak collectors`), or `all`.
    #[arg(long, value_name = "NAME", default_value = "generational", value_parser = parse_collector)]
    pub(crate) gc: Selection<CollectorKind>,

    /// The layer of the heap that the program is written on.
    #[arg(long, value_enum, default_value_t = Api::Raw)]
    pub(crate) api: Api,

    /// Limit of the heap: 256m, 1g, 512k, or bytes [default: what bench/PROGRAMS.md says].
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    pub(crate) heap: Option<usize>,

    /// Size of the nursery (generational), or bytes per epoch (refcount); the default adapts
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    pub(crate) nursery: Option<usize>,

    /// Depth of the largest tree: gcbench [default: 18], binary-trees [default: 16].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=28))]
    pub(crate) depth: Option<u8>,

    /// Objects: large-live-heap and long-list [default: 10000000], scaling [default: 1000000].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub(crate) objects: Option<u64>,

    /// Print the result as JSON, on the last line.
    #[arg(long)]
    pub(crate) json: bool,

    /// Print the statistics of the heap.
    #[arg(long)]
    pub(crate) stats: bool,

    /// Write a log of the collections in the form of HotSpot's -Xlog:gc; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub(crate) gc_log: Option<PathBuf>,

    /// Check the whole heap after every collection (slow).
    #[arg(long)]
    pub(crate) sanity: bool,

    /// Collect again when the heap has grown to this multiple of what survived.
    #[arg(long, value_name = "X")]
    pub(crate) growth: Option<f64>,

    /// MARKNUM: objects marked in one step; 0 lets the collector choose (incremental).
    #[arg(long, value_name = "N")]
    pub(crate) mark_num: Option<usize>,

    /// SWEEPNUM: objects swept in one step; 0 lets the collector choose (incremental).
    #[arg(long, value_name = "N")]
    pub(crate) sweep_num: Option<usize>,

    /// FREENUM: marking starts when fewer objects are free; 0 lets the collector choose (incremental).
    #[arg(long, value_name = "N")]
    pub(crate) free_num: Option<usize>,
}

impl BenchArguments {
    /// The settings of the heap for a run of `program`.
    pub(crate) fn config(&self, program: Program) -> HeapConfig {
        let default = HeapConfig::default();
        let depth = self.depth_of(program);
        HeapConfig {
            max_bytes: self.heap.unwrap_or_else(|| program.heap_bytes(depth)),
            nursery_bytes: self.nursery.unwrap_or(default.nursery_bytes),
            growth: self.growth.unwrap_or(default.growth),
            sanity: self.sanity,
            incremental: IncrementalSettings {
                mark_num: self.mark_num.unwrap_or(default.incremental.mark_num),
                sweep_num: self.sweep_num.unwrap_or(default.incremental.sweep_num),
                free_num: self.free_num.unwrap_or(default.incremental.free_num),
            },
            // A log is complete or it is misleading.
            records: if self.gc_log.is_some() {
                usize::MAX
            } else {
                default.records
            },
            ..default
        }
    }

    /// The depth of the trees of `program`; 0 if it has none.
    pub(crate) fn depth_of(&self, program: Program) -> u8 {
        let default = program.default_depth();
        default.map_or(0, |default| self.depth.unwrap_or(default))
    }

    /// The objects of `program`; 0 if it does not ask for a number.
    pub(crate) fn objects_of(&self, program: Program) -> u64 {
        let default = program.default_objects();
        default.map_or(0, |default| self.objects.unwrap_or(default))
    }
}

/// One of them, or all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Selection<T> {
    One(T),
    All,
}

fn program_parser() -> impl TypedValueParser<Value = Selection<Program>> {
    let programs = Program::value_variants().iter();
    let mut names: Vec<PossibleValue> = programs.filter_map(ValueEnum::to_possible_value).collect();
    names.push(PossibleValue::new("all").help("All of them, one after the other"));
    PossibleValuesParser::new(names).try_map(|name| match name.as_str() {
        "all" => Ok(Selection::All),
        name => Program::from_str(name, false).map(Selection::One),
    })
}

fn parse_collector(name: &str) -> Result<Selection<CollectorKind>, HeapError> {
    match name {
        "all" => Ok(Selection::All),
        name => name.parse().map(Selection::One),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_flags_are_consistent() {
        Arguments::command().debug_assert();
    }
}
