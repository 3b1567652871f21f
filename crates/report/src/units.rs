//! Sizes, durations and counts for human readers: three significant digits, the unit that fits.

use std::time::Duration;

/// A size in binary units: `0 B`, `1023 B`, `1.50 KiB`, `24.0 MiB`.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    scaled(bytes as f64 / 1024.0, 1024.0, &UNITS)
}

/// A duration: `0 ns`, `999 ns`, `1.23 µs`, `45.6 ms`, `12.0 s`, `3600 s`.
pub fn duration(duration: Duration) -> String {
    const UNITS: [&str; 3] = ["µs", "ms", "s"];
    let nanoseconds = duration.as_nanos();
    if nanoseconds < 1000 {
        return format!("{nanoseconds} ns");
    }
    scaled(nanoseconds as f64 / 1000.0, 1000.0, &UNITS)
}

/// A number with its thousands apart: `1,234,567`.
pub fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut grouped = String::with_capacity(digits.len() * 4 / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// `value` in the first unit that brings it below `step`, each unit being `step` times the one before it.
fn scaled(mut value: f64, step: f64, units: &[&str]) -> String {
    let mut unit = 0;
    // What would be *written* as `step` belongs to the next unit: 1023.7 KiB is 1.00 MiB, not 1024 KiB.
    while value.round() >= step && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    let decimals = match value {
        _ if value < 9.995 => 2,
        _ if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let expected = [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.00 KiB"),
            (1536, "1.50 KiB"),
            (10 * 1024 - 1, "10.0 KiB"),
            ((1 << 20) - 1, "1.00 MiB"),
            (24 << 20, "24.0 MiB"),
            (1000 << 20, "1000 MiB"),
            (5 << 40, "5.00 TiB"),
            (u64::MAX, "16.0 EiB"),
        ];
        for (size, text) in expected {
            assert_eq!(bytes(size), text);
        }
    }

    #[test]
    fn durations() {
        let expected = [
            (0, "0 ns"),
            (999, "999 ns"),
            (1000, "1.00 µs"),
            (1234, "1.23 µs"),
            (999_400, "999 µs"),
            (999_500, "1.00 ms"),
            (45_600_000, "45.6 ms"),
            (12_000_000_000, "12.0 s"),
            (3_600_000_000_000, "3600 s"),
        ];
        for (nanoseconds, text) in expected {
            assert_eq!(duration(Duration::from_nanos(nanoseconds)), text);
        }
    }

    #[test]
    fn counts() {
        let expected = [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (1_234_567, "1,234,567"),
        ];
        for (number, text) in expected {
            assert_eq!(count(number), text);
        }
    }
}
