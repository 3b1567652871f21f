//! The harness's flags.

use std::path::PathBuf;
use std::time::Duration;

/// What `--help` prints.
pub(crate) const HELP: &str = "\
Runs the benchmark programs with every contender and prints one table per program.

usage: bench/run [flags]
  --reps N           repetitions of every pair (default 5)
  --program TEXT     only programs whose name contains TEXT (may be repeated)
  --contender TEXT   only contenders whose name contains TEXT (may be repeated; = at the front: exactly TEXT)
  --timeout SECONDS  limit of one run, in CPU time (default 60)
  --json FILE        all results as JSON
  --markdown FILE    the tables as Markdown
  --liveoak FILE     the liveoak binary (default: target/release/liveoak of the repository)
  --list             names of programs and contenders, nothing is run
  --help             this text
";

/// The flags, read.
#[derive(Debug)]
pub(crate) struct Flags {
    pub(crate) reps: usize,
    pub(crate) programs: Vec<String>,
    pub(crate) contenders: Vec<String>,
    pub(crate) timeout: Duration,
    pub(crate) json: Option<PathBuf>,
    pub(crate) markdown: Option<PathBuf>,
    pub(crate) liveoak: Option<PathBuf>,
    pub(crate) list: bool,
    pub(crate) help: bool,
}

impl Flags {
    /// Reads the command line, without the program's name.
    pub(crate) fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut flags = Self {
            reps: 5,
            programs: Vec::new(),
            contenders: Vec::new(),
            timeout: Duration::from_secs(60),
            json: None,
            markdown: None,
            liveoak: None,
            list: false,
            help: false,
        };
        while let Some(flag) = args.next() {
            let mut value = || args.next().ok_or(format!("{flag} needs a value"));
            match flag.as_str() {
                "--reps" => flags.reps = positive(&flag, &value()?)? as usize,
                "--timeout" => flags.timeout = Duration::from_secs(positive(&flag, &value()?)?),
                "--program" => flags.programs.push(value()?),
                "--contender" => flags.contenders.push(value()?),
                "--json" => flags.json = Some(value()?.into()),
                "--markdown" => flags.markdown = Some(value()?.into()),
                "--liveoak" => flags.liveoak = Some(value()?.into()),
                "--list" => flags.list = true,
                "--help" | "-h" => flags.help = true,
                _ => return Err(format!("unknown flag {flag}; --help lists the flags")),
            }
        }
        Ok(flags)
    }

    /// Is a program asked for?
    pub(crate) fn wants_program(&self, name: &str) -> bool {
        wanted(&self.programs, name)
    }

    /// Is a contender asked for?
    pub(crate) fn wants_contender(&self, name: &str) -> bool {
        wanted(&self.contenders, name)
    }
}

fn wanted(filters: &[String], name: &str) -> bool {
    filters.is_empty()
        || filters.iter().any(|filter| match filter.strip_prefix('=') {
            Some(exact) => exact == name,
            None => name.contains(filter.as_str()),
        })
}

fn positive(flag: &str, value: &str) -> Result<u64, String> {
    match value.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(format!("{flag} {value}: a number above 0 is needed")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Flags, String> {
        Flags::parse(text.split_whitespace().map(String::from))
    }

    #[test]
    fn filters_by_part_or_exactly() {
        let flags = parse("--contender mmtk --contender =box").unwrap();
        assert!(flags.wants_contender("mmtk-immix"));
        assert!(flags.wants_contender("box"));
        assert!(!flags.wants_contender("box-mimalloc"));
        assert!(flags.wants_program("gcbench"));
    }

    #[test]
    fn refuses_nonsense() {
        for text in ["--reps 0", "--reps many", "--json", "--quick"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
