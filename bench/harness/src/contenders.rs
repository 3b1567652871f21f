//! The contenders: names, and the command line of each for a program.

use crate::programs::{Entrants, Heap, Program};
use std::path::{Path, PathBuf};

/// The measure of all ratios.
pub(crate) const BASELINE: &str = "box";

/// A contender.
#[derive(Debug)]
pub(crate) struct Contender {
    /// Its name in tables and filters.
    pub(crate) name: &'static str,
    /// What kind of thing it is.
    pub(crate) role: Role,
    launch: Launch,
}

/// What a contender is compared as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// No collector: an allocator.
    Allocator,
    /// Somebody else's collector.
    Rival,
    /// Ours.
    Liveoak,
}

#[derive(Debug)]
enum Launch {
    /// A binary beside the harness, with arguments, with or without a limit of its heap.
    Native(&'static str, &'static [&'static str], Limit),
    /// HotSpot with these options.
    Java(&'static [&'static str]),
    /// The liveoak binary with this collector and interface.
    Liveoak(&'static str, &'static str),
}

#[derive(Clone, Copy, Debug)]
enum Limit {
    None,
    OneWordHeaders,
}

/// Where the things are that contenders need.
#[derive(Debug)]
pub(crate) struct Places {
    /// The native contenders.
    pub(crate) binaries: PathBuf,
    /// The compiled Java classes, or why there are none.
    pub(crate) classes: Result<PathBuf, String>,
    /// The liveoak binary with its `bench` command, or why there is none.
    pub(crate) liveoak: Result<PathBuf, String>,
}

macro_rules! contenders {
    ($($name:literal $role:ident $launch:expr;)*) => {
        /// All contenders.
        pub(crate) static CONTENDERS: &[Contender] = &[
            $(Contender { name: $name, role: Role::$role, launch: $launch },)*
        ];
    };
}

use Launch::{Java, Liveoak, Native};
use Limit::OneWordHeaders;

contenders! {
    "box" Allocator Native("contender-box", &[], Limit::None);
    "box-mimalloc" Allocator Native("contender-mimalloc", &[], Limit::None);
    "bump" Allocator Native("contender-bump", &[], Limit::None);
    "bump-region" Allocator Native("contender-bump", &["--plan", "region"], Limit::None);
    "boehm" Rival Native("contender-boehm", &[], Limit::None);
    "gc-arena" Rival Native("contender-gc-arena", &[], Limit::None);
    "gc-arena-stw" Rival Native("contender-gc-arena", &["--plan", "stop-the-world"], Limit::None);
    "mmtk-genimmix" Rival Native("contender-mmtk", &["--plan", "GenImmix"], OneWordHeaders);
    "mmtk-gencopy" Rival Native("contender-mmtk", &["--plan", "GenCopy"], OneWordHeaders);
    "mmtk-immix" Rival Native("contender-mmtk", &["--plan", "Immix"], OneWordHeaders);
    "mmtk-semispace" Rival Native("contender-mmtk", &["--plan", "SemiSpace"], OneWordHeaders);
    "mmtk-marksweep" Rival Native("contender-mmtk", &["--plan", "MarkSweep"], OneWordHeaders);
    "hotspot-serial" Rival Java(&["-XX:+UseSerialGC"]);
    "hotspot-parallel" Rival Java(&["-XX:+UseParallelGC"]);
    "hotspot-g1" Rival Java(&["-XX:+UseG1GC"]);
    "hotspot-shenandoah" Rival Java(&["-XX:+UseShenandoahGC"]);
    "liveoak-mark-sweep" Liveoak Liveoak("mark-sweep", "raw");
    "liveoak-incremental" Liveoak Liveoak("incremental", "raw");
    "liveoak-concurrent" Liveoak Liveoak("concurrent", "raw");
    "liveoak-semispace" Liveoak Liveoak("semispace", "raw");
    "liveoak-generational" Liveoak Liveoak("generational", "raw");
    "liveoak-generational-safe" Liveoak Liveoak("generational", "safe");
    "liveoak-mark-compact" Liveoak Liveoak("mark-compact", "raw");
    "liveoak-refcount" Liveoak Liveoak("refcount", "raw");
}

/// A command line, and what to say about it in the table.
#[derive(Debug)]
pub(crate) struct Invocation {
    /// The program and its arguments.
    pub(crate) command: Vec<String>,
    /// The settings that the contender does not report itself.
    pub(crate) settings: Option<String>,
}

impl Contender {
    /// Does it take part in the program?
    pub(crate) fn enters(&self, program: &Program) -> bool {
        // The safe layer has versions of the tree programs only.
        if let Liveoak(_, "safe") = self.launch {
            return program.name == "gcbench" || program.name.starts_with("binary-trees");
        }
        program.entrants == Entrants::All || self.role == Role::Liveoak
    }

    /// The command line for the program, or what is missing.
    pub(crate) fn invocation(
        &self,
        program: &Program,
        places: &Places,
    ) -> Result<Invocation, String> {
        match &self.launch {
            Native(binary, args, limit) => {
                let mut command = vec![existing(&places.binaries.join(binary))?];
                command.extend(program.args.iter().chain(*args).map(|s| s.to_string()));
                if let OneWordHeaders = limit {
                    command.extend(["--heap".into(), program.heap.one_word().to_string()]);
                }
                Ok(Invocation {
                    command,
                    settings: None,
                })
            }
            Java(options) => {
                let classes = places.classes.clone()?;
                let megabytes = program.heap.compressed() >> 20;
                let mut command = vec!["java".to_string()];
                command.extend(options.iter().map(|s| s.to_string()));
                command.push(format!("-Xms{megabytes}m"));
                command.push(format!("-Xmx{megabytes}m"));
                command.extend(["-Xlog:gc".into(), "-cp".into()]);
                command.extend([classes.display().to_string(), "Contender".into()]);
                command.extend(program.args.iter().map(|s| s.to_string()));
                Ok(Invocation {
                    command,
                    settings: Some(format!("-Xms = -Xmx = {megabytes} MiB")),
                })
            }
            Liveoak(collector, api) => {
                let liveoak = places.liveoak.clone()?.display().to_string();
                let heap = program.heap.liveoak().to_string();
                let mut command = vec![liveoak, "bench".into()];
                command.extend(program.args.iter().map(|s| s.to_string()));
                for text in ["--gc", collector, "--api", api, "--heap", &heap, "--json"] {
                    command.push(text.into());
                }
                Ok(Invocation {
                    command,
                    settings: Some(format!("heap {} MB", program.heap.liveoak() / 1_000_000)),
                })
            }
        }
    }
}

impl Heap {
    fn one_word(&self) -> u64 {
        match *self {
            Heap::Fixed(bytes) => bytes,
            Heap::PerLayout { one_word, .. } => one_word,
        }
    }

    fn liveoak(&self) -> u64 {
        match *self {
            Heap::Fixed(bytes) => bytes,
            Heap::PerLayout { liveoak, .. } => liveoak,
        }
    }

    fn compressed(&self) -> u64 {
        match *self {
            Heap::Fixed(bytes) => bytes,
            Heap::PerLayout { compressed, .. } => compressed,
        }
    }
}

fn existing(path: &Path) -> Result<String, String> {
    if path.is_file() {
        return Ok(path.display().to_string());
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Err(format!("not built: {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::PROGRAMS;

    #[test]
    fn names_are_unique_and_the_baseline_is_among_them() {
        let mut names: Vec<_> = CONTENDERS.iter().map(|c| c.name).collect();
        assert!(names.contains(&BASELINE));
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn what_is_missing_is_said() {
        let places = Places {
            binaries: "/nowhere".into(),
            classes: Err("java is not installed".into()),
            liveoak: Err("not built".into()),
        };
        for contender in CONTENDERS {
            assert!(contender.invocation(&PROGRAMS[0], &places).is_err());
        }
    }
}
