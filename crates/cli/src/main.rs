//! The `liveoak` command: the only crate that reads flags and prints.
//!
//! `liveoak bench` runs the benchmark programs of `bench/PROGRAMS.md` on a collector, or on all of them;
//! `liveoak collectors` says which there are. Exit code 0: it ran. 1: it could not be run to its end, and standard error
//! says why. 2: wrong use.

#![forbid(unsafe_code)]

mod args;
mod bench;
mod collectors;
mod comparison;
mod failure;
mod process;
mod size;
mod workload;

use args::{Arguments, Command};
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match arguments.command {
        Command::Bench(bench) => bench::run(bench),
        Command::Collectors(collectors) => collectors::run(collectors),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads our output has had enough of it.
        Err(failure) if failure.is_closed_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            failure.exit_code()
        }
    }
}
