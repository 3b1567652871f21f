//! A number with its two names: one for programs, one for people.

use liveoak_report::units;
use serde_json::Value;
use std::time::Duration;

/// A measured quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quantity {
    /// Time, in microseconds for programs.
    Micros(Duration),
    /// Time, in milliseconds for programs.
    Millis(Duration),
    Bytes(u64),
    Count(u64),
}

/// A measured quantity with its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Measurement {
    /// The field of the JSON object; the unit is part of it.
    pub(crate) field: &'static str,
    /// What people read.
    pub(crate) label: &'static str,
    pub(crate) quantity: Quantity,
}

impl Measurement {
    pub(crate) fn new(field: &'static str, label: &'static str, quantity: Quantity) -> Measurement {
        Measurement {
            field,
            label,
            quantity,
        }
    }

    /// The value in JSON.
    pub(crate) fn json(&self) -> Value {
        match self.quantity {
            Quantity::Micros(time) => thousandths(time.as_secs_f64() * 1e6),
            Quantity::Millis(time) => thousandths(time.as_secs_f64() * 1e3),
            Quantity::Bytes(number) | Quantity::Count(number) => number.into(),
        }
    }

    /// The value for people.
    pub(crate) fn text(&self) -> String {
        match self.quantity {
            Quantity::Micros(time) | Quantity::Millis(time) => units::duration(time),
            Quantity::Bytes(bytes) => units::bytes(bytes),
            Quantity::Count(count) => units::count(count),
        }
    }
}

/// Three decimals: a clock of nanoseconds does not know more about microseconds.
fn thousandths(number: f64) -> Value {
    ((number * 1000.0).round() / 1000.0).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_is_that_of_the_field() {
        let time = Duration::from_nanos(1_234_567);
        let json = |quantity| Measurement::new("", "", quantity).json().to_string();
        assert_eq!(json(Quantity::Micros(time)), "1234.567");
        assert_eq!(json(Quantity::Millis(time)), "1.235");
        assert_eq!(json(Quantity::Count(7)), "7");
    }
}
