//! The table of how collections grow with the live objects (`scaling`, Liveoak only).

use crate::contenders::{CONTENDERS, Role};
use crate::table::Table;
use crate::targets::Results;

const SIZES: [(&str, f64); 4] = [
    ("scaling-1e4", 1e4),
    ("scaling-1e5", 1e5),
    ("scaling-1e6", 1e6),
    ("scaling-1e7", 1e7),
];

/// Nanoseconds of a full collection for each live object, and microseconds of a minor one.
pub(crate) fn table(results: &Results) -> Table {
    let rows = CONTENDERS
        .iter()
        .filter(|contender| contender.role == Role::Liveoak)
        .map(|contender| {
            let mut cells = vec![contender.name.to_string()];
            let shown = |figure: &str, program, unit: f64| {
                let value = results.get(&(program, contender.name))?.figure(figure)?;
                Some(format!("{:.1}", value / unit))
            };
            for (program, objects) in SIZES {
                let cell = shown("full_gc_cpu_us", program, objects / 1e3);
                cells.push(cell.unwrap_or("–".into()));
            }
            for (program, _) in SIZES {
                let cell = shown("minor_gc_cpu_us", program, 1.0);
                cells.push(cell.unwrap_or("–".into()));
            }
            cells.push(String::new());
            cells
        })
        .collect();
    Table {
        title: "scaling: full collection, ns CPU per live object; minor collection, µs CPU; by live objects".into(),
        header: vec![
            "contender", "10⁴", "10⁵", "10⁶", "10⁷", "minor 10⁴", "10⁵", "10⁶", "10⁷", "",
        ],
        rows,
    }
}
