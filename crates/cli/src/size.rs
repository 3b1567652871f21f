//! Sizes as people write them: `64m`, `1g`, `512k`, `4096`.

/// Bytes of a size. The units are binary, in either case, with or without `b` or `ib` behind them.
pub(crate) fn parse(text: &str) -> Result<usize, String> {
    let lower = text.trim().to_ascii_lowercase();
    let digits = lower.trim_end_matches(|c: char| !c.is_ascii_digit());
    let number: usize = digits
        .parse()
        .map_err(|_| "not a size; sizes look like 64m, 1g, 512k or 4096".to_string())?;
    let shift = match &lower[digits.len()..] {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        unit => {
            return Err(format!(
                "no unit is called {unit:?}; use k, m or g, as in 64m"
            ));
        }
    };
    number
        .checked_mul(1 << shift)
        .ok_or_else(|| "more than the address space".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        let expected = [
            ("0", 0),
            ("4096", 4096),
            ("512k", 512 << 10),
            ("64m", 64 << 20),
            ("64M", 64 << 20),
            ("64MiB", 64 << 20),
            ("1g", 1 << 30),
            (" 7b ", 7),
        ];
        for (text, bytes) in expected {
            assert_eq!(parse(text), Ok(bytes), "{text:?}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in [
            "",
            "m",
            "-1",
            "1.5g",
            "64q",
            "64 m m",
            "µ",
            "1µ",
            "99999999999999999999",
            "99999999999g",
        ] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }
}
