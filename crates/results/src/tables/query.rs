//! Pages of a table, filtered and sorted, read from disk on demand.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::scan::{Cell, Scan};
use super::schema::Table;
use crate::ResultsError;

/// A request for rows of a table.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Query {
    /// Number of matching rows before the first one to return.
    pub offset: usize,
    /// Number of rows to return; at most [`Query::MOST_ROWS`].
    pub limit: usize,
    /// Column to sort by; `None`: in the order of the file.
    pub sort: Option<String>,
    /// Whether large values come first; missing ones come last either way.
    pub descending: bool,
    /// Conditions, all of which rows must meet.
    pub filters: Vec<Filter>,
}

/// A condition on a column.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Filter {
    /// Name of the column.
    pub column: String,
    /// How the column's value is compared with `value`.
    pub is: Relation,
    /// Text or number to compare with.
    pub value: String,
}

/// Relation of a cell to a value. A missing cell has none but `Not`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Relation {
    /// Equal; of texts: the same letters.
    Equal,
    /// Not equal.
    Not,
    /// Less, or before in the alphabet.
    Less,
    /// Greater, or after in the alphabet.
    Greater,
    /// Contains the text.
    Contains,
}

/// Rows of a table.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Page {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Number of rows of the table.
    pub total: u64,
    /// Number of rows that meet the conditions.
    pub matching: u64,
    /// The rows, column by column.
    pub rows: Vec<Vec<Cell>>,
}

/// The reason why a query has no answer.
#[derive(Debug)]
pub enum QueryError {
    /// The query is wrong; the text says how.
    Wrong(String),
    /// The file cannot be read.
    File(ResultsError),
}

impl From<ResultsError> for QueryError {
    fn from(error: ResultsError) -> Self {
        Self::File(error)
    }
}

impl Query {
    /// Largest number of rows of a page.
    pub const MOST_ROWS: usize = 1_000;
    /// Largest number of sorted rows that are kept in memory.
    pub const MOST_SORTED: usize = 1_000_000;

    /// Returns the rows of a table. Memory depends on the number of rows up to the end of the page, if they are sorted,
    /// and not on that of the table.
    ///
    /// # Errors
    /// Returns an error when the query names no column of the table or asks for too much, or the file cannot be read.
    pub fn run(&self, table: Table, path: &Path) -> Result<Page, QueryError> {
        let scan = Scan::open(table, path)?;
        let column = |name: &str| {
            scan.names().iter().position(|other| other == name).ok_or_else(|| {
                QueryError::Wrong(format!("no column \"{name}\"; there are {}", scan.names().join(", ")))
            })
        };
        if self.limit > Self::MOST_ROWS {
            return Err(QueryError::Wrong(format!("limit {}: at most {}", self.limit, Self::MOST_ROWS)));
        }
        let end = self.offset.saturating_add(self.limit);
        let (mut columns, mut conditions) = (Vec::new(), Vec::new());
        for filter in &self.filters {
            let column = column(&filter.column)?;
            conditions.push(Condition::new(filter, scan.is_text(column))?);
            columns.push(column);
        }
        if let Some(name) = &self.sort {
            if end > Self::MOST_SORTED {
                return Err(QueryError::Wrong(format!(
                    "the first {} rows can be paged through when sorted; add conditions",
                    Self::MOST_SORTED
                )));
            }
            columns.push(column(name)?);
        }
        let (wanted, matching) = match columns.is_empty() {
            true => ((self.offset as u64..end as u64).take_while(|&row| row < scan.rows()).collect(), scan.rows()),
            false => self.search(&scan, &columns, &conditions, end)?,
        };
        Ok(Page { columns: scan.names().to_vec(), total: scan.rows(), matching, rows: scan.rows_at(&wanted)? })
    }

    /// Returns the numbers of the page's rows in their order, and the number of all matching rows. The last of
    /// `columns` is the one to sort by, if there is one.
    fn search(
        &self,
        scan: &Scan,
        columns: &[usize],
        conditions: &[Condition],
        end: usize,
    ) -> Result<(Vec<u64>, u64), ResultsError> {
        let (mut matching, mut plain, mut least) = (0_u64, Vec::new(), BinaryHeap::new());
        let is_sorted = self.sort.is_some();
        scan.read(
            columns,
            |_| false,
            |first, cells| {
                let meets =
                    |row: usize| conditions.iter().zip(cells).all(|(condition, column)| condition.holds(&column[row]));
                for row in (0..cells[0].len()).filter(|&row| meets(row)) {
                    let number = first + row as u64;
                    if is_sorted {
                        let cell = cells[cells.len() - 1][row].clone();
                        least.push(Sorted { cell, number, descending: self.descending });
                        if least.len() > end {
                            least.pop();
                        }
                    } else if (self.offset as u64..end as u64).contains(&matching) {
                        plain.push(number);
                    }
                    matching += 1;
                }
                true
            },
        )?;
        if is_sorted {
            plain = least.into_sorted_vec().into_iter().skip(self.offset).map(|sorted| sorted.number).collect();
        }
        Ok((plain, matching))
    }
}

/// A filter whose value is of the column's type.
struct Condition {
    is: Relation,
    text: String,
    /// `None`: the column is a text.
    number: Option<f64>,
}

impl Condition {
    fn new(filter: &Filter, is_text: bool) -> Result<Self, QueryError> {
        let Filter { column, is, value } = filter;
        let number = match value.trim() {
            _ if is_text || *is == Relation::Contains => None,
            "true" | "yes" => Some(1.0),
            "false" | "no" => Some(0.0),
            text => {
                let wrong = || QueryError::Wrong(format!("{column} is a number, and \"{text}\" is none"));
                Some(text.replace(['_', ','], "").parse().map_err(|_| wrong())?)
            }
        };
        Ok(Self { is: *is, text: value.clone(), number })
    }

    fn holds(&self, cell: &Cell) -> bool {
        let order = match (self.number, cell.number()) {
            (Some(wanted), Some(found)) => found.partial_cmp(&wanted),
            (None, None) if *cell != Cell::Missing => Some(cell.text().cmp(&self.text)),
            _ => None,
        };
        match self.is {
            Relation::Equal => order == Some(Ordering::Equal),
            Relation::Not => order != Some(Ordering::Equal),
            Relation::Less => order == Some(Ordering::Less),
            Relation::Greater => order == Some(Ordering::Greater),
            Relation::Contains => match cell {
                Cell::Text(_) => cell.text().contains(&self.text),
                Cell::Missing => false,
                _ => cell.number().is_some_and(|number| number.to_string().contains(&self.text)),
            },
        }
    }
}

/// A row with the value by which it is sorted; rows with equal values keep the order of the file.
struct Sorted {
    cell: Cell,
    number: u64,
    descending: bool,
}

impl Ord for Sorted {
    fn cmp(&self, other: &Self) -> Ordering {
        let missing = |sorted: &Self| sorted.cell == Cell::Missing;
        let by_value = match (self.cell.number(), other.cell.number()) {
            (Some(one), Some(other)) => one.total_cmp(&other),
            _ => self.cell.text().cmp(other.cell.text()),
        };
        let by_value = if self.descending { by_value.reverse() } else { by_value };
        missing(self).cmp(&missing(other)).then(by_value).then(self.number.cmp(&other.number))
    }
}
impl PartialOrd for Sorted {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for Sorted {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Sorted {}
