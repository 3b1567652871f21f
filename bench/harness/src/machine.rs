//! The machine on which the numbers were measured.

use std::fmt;
use std::fs;

/// What a reader of the tables wants to know of it.
#[derive(Debug)]
pub(crate) struct Machine {
    processor: String,
    cores: usize,
    memory_gib: u64,
    system: String,
}

impl Machine {
    /// Looks at this machine.
    pub(crate) fn here() -> Self {
        let memory = value("/proc/meminfo", "MemTotal:").and_then(|text| {
            let kib: u64 = text.split_whitespace().next()?.parse().ok()?;
            Some(kib >> 20)
        });
        let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
        let system = release
            .lines()
            .find_map(|line| line.strip_prefix("PRETTY_NAME="))
            .unwrap_or("unknown system");
        Self {
            processor: value("/proc/cpuinfo", "model name").unwrap_or("unknown processor".into()),
            cores: std::thread::available_parallelism().map_or(0, Into::into),
            memory_gib: memory.unwrap_or(0),
            system: system.trim_matches('"').into(),
        }
    }
}

fn value(file: &str, key: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    Some(line.trim_matches([' ', '\t', ':']).into())
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            processor,
            cores,
            memory_gib,
            system,
        } = self;
        write!(f, "{processor}, {cores} cores, {memory_gib} GiB, {system}")
    }
}
