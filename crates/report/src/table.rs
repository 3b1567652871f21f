//! Plain text in columns.

use std::fmt;

/// Rows of cells. The first column is flush left, the others flush right, as wide as their widest cell.
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table that begins with a row of headings.
    pub fn new<const N: usize>(headings: [&str; N]) -> Table {
        Table {
            rows: vec![headings.map(String::from).to_vec()],
        }
    }

    /// Adds a row.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        debug_assert_eq!(
            N,
            self.rows[0].len(),
            "a row has as many cells as the headings"
        );
        self.rows.push(cells.to_vec());
    }

    fn widths(&self) -> Vec<usize> {
        let columns = 0..self.rows[0].len();
        // In characters, not bytes: µ is one of the former and two of the latter.
        let width = |column: usize| {
            self.rows
                .iter()
                .map(move |row| row[column].chars().count())
                .max()
        };
        columns.map(|column| width(column).unwrap_or(0)).collect()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        for row in &self.rows {
            write!(f, "{:1$}", row[0], widths[0])?;
            for (cell, width) in row.iter().zip(&widths).skip(1) {
                write!(f, "  {cell:>width$}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new(["kind", "time"]);
        table.row(["minor".into(), "1.00 µs".into()]);
        table.row(["full".into(), "12.0 ms".into()]);
        assert_eq!(
            table.to_string(),
            "kind      time\nminor  1.00 µs\nfull   12.0 ms\n"
        );
    }
}
