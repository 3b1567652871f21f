//! What the operating system knows about this process.

use std::fs;

/// The most physical memory that the process has had so far, in bytes; none where `/proc` does not tell.
pub(crate) fn peak_resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    peak_in(&status)
}

fn peak_in(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_high_water_mark_is_found() {
        assert_eq!(
            peak_in("Name:\tx\nVmHWM:\t    1536 kB\nVmRSS:\t 12 kB\n"),
            Some(1536 << 10)
        );
        assert_eq!(peak_in("Name:\tx\n"), None);
        assert_eq!(peak_in("VmHWM:\tmuch kB\n"), None);
    }
}
