//! The command line of a contender: `PROGRAM [--depth N] [--objects N] [--heap BYTES] [--plan NAME]`.

/// Which program to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// Boehm's GCBench.
    GcBench,
    /// The Benchmarks Game's program, with its depth.
    BinaryTrees(u32),
    /// The table of five million entries.
    LargeLiveHeap,
    /// The list of so many cells.
    LongList(u64),
}

/// What the command line says.
#[derive(Clone, Debug)]
pub struct Command {
    /// The program.
    pub program: Program,
    /// The limit of the heap in bytes, if one is given.
    pub heap: Option<usize>,
    /// The plan (MMTk only), if one is given.
    pub plan: Option<String>,
}

impl Command {
    /// Reads the process's arguments; a wrong one ends the process with exit code 2.
    pub fn from_args() -> Self {
        Self::parse(std::env::args().skip(1)).unwrap_or_else(|error| {
            eprintln!("{error}");
            std::process::exit(2)
        })
    }

    fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let name = args.next().ok_or("which program?")?;
        let (mut depth, mut objects, mut heap, mut plan) = (16, 10_000_000, None, None);
        while let Some(flag) = args.next() {
            let value = args.next().ok_or_else(|| format!("{flag} needs a value"))?;
            let number = || {
                value
                    .parse::<u64>()
                    .map_err(|_| format!("{flag} {value}: not a number"))
            };
            match flag.as_str() {
                "--depth" => depth = number()? as u32,
                "--objects" => objects = number()?,
                "--heap" => heap = Some(number()? as usize),
                "--plan" => plan = Some(value),
                _ => return Err(format!("unknown flag {flag}")),
            }
        }
        let program = match name.as_str() {
            "gcbench" => Program::GcBench,
            "binary-trees" => Program::BinaryTrees(depth),
            "large-live-heap" => Program::LargeLiveHeap,
            "long-list" => Program::LongList(objects),
            _ => return Err(format!("unknown program {name}")),
        };
        Ok(Self {
            program,
            heap,
            plan,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_program_and_flags() {
        let args = ["binary-trees", "--depth", "18", "--heap", "4096"];
        let command = Command::parse(args.into_iter().map(String::from)).unwrap();
        assert_eq!(command.program, Program::BinaryTrees(18));
        assert_eq!(command.heap, Some(4096));
    }

    #[test]
    fn refuses_what_it_does_not_know() {
        for args in [
            &["quicksort"][..],
            &["gcbench", "--fast", "1"],
            &["gcbench", "--heap"],
        ] {
            assert!(Command::parse(args.iter().map(|s| s.to_string())).is_err());
        }
    }
}
