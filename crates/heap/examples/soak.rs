//! Random programs over all collectors, until time is over.
//!
//! `cargo run --release -p liveoak-heap --example soak --features testing -- --minutes 10`
//!
//! `--seed N` begins with that seed (the first program of a run that failed can be had again this
//! way), `--collector NAME` runs one collector only, `--operations N` sets the length of programs.
//! Exit code 1 when a program failed; seed, problem and shortest program are printed.

use liveoak_heap::kind::CollectorKind;
use liveoak_heap::testing::{Program, check_among};
use std::process::ExitCode;
use std::time::{Duration, Instant};

struct Options {
    minutes: f64,
    seed: u64,
    operations: usize,
    kinds: Vec<CollectorKind>,
}

fn options() -> Result<Options, String> {
    let mut options = Options {
        minutes: 1.0,
        seed: 1,
        operations: 1000,
        kinds: CollectorKind::ALL.to_vec(),
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(flag) = arguments.next() {
        let value = arguments.next().ok_or(format!("{flag} needs a value"))?;
        let bad = |error: &dyn std::fmt::Display| format!("{flag} {value}: {error}");
        match flag.as_str() {
            "--minutes" => options.minutes = value.parse().map_err(|e| bad(&e))?,
            "--seed" => options.seed = value.parse().map_err(|e| bad(&e))?,
            "--operations" => options.operations = value.parse().map_err(|e| bad(&e))?,
            "--collector" => options.kinds = vec![value.parse().map_err(|e| bad(&e))?],
            _ => return Err(format!("there is no flag {flag}")),
        }
    }
    Ok(options)
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(problem) => {
            eprintln!("{problem}");
            return ExitCode::from(2);
        }
    };
    // A failure is reported below; while it is being shrunk it would be printed hundreds of times.
    std::panic::set_hook(Box::new(|_| ()));
    let fails = |program: &Program| check_among(&options.kinds, program).err();
    let start = Instant::now();
    let (mut programs, mut last) = (0u64, Instant::now());
    while start.elapsed().as_secs_f64() < options.minutes * 60.0 {
        let seed = options.seed.wrapping_add(programs);
        let program = Program::random(seed, options.operations);
        programs += 1;
        if let Some(failure) = fails(&program) {
            // Said at once: to find the shortest program may take long.
            println!("seed {seed} failed after {programs} programs: {failure}");
            let short = program.shrink(|candidate| fails(candidate).is_some());
            let failure = fails(&short).map_or("not every time".to_string(), |f| f.to_string());
            println!("shortest:\n{failure}\n{short:?}");
            return ExitCode::FAILURE;
        }
        if last.elapsed() > Duration::from_secs(30) {
            last = Instant::now();
            eprintln!("{programs} programs, seed {seed}, {:?}", start.elapsed());
        }
    }
    let names: Vec<&str> = options.kinds.iter().map(|kind| kind.name()).collect();
    println!(
        "{programs} programs of {} operations on {}: no failure",
        options.operations,
        names.join(", ")
    );
    ExitCode::SUCCESS
}
