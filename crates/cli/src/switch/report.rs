//! Report of what switches did to frames, for people and programs.

use std::fmt::Write as _;

use selvedge_dataplane::switch::{Engine, Outcome, PortCounts};
use serde_json::{Map, Value, json};

pub(super) fn as_json<E: Engine>(hosts: &[&str], outcome: &Outcome<E>) -> Value {
    let of_port = |(name, counts): (&&str, &PortCounts)| {
        let counts = counts.named().map(|(name, value)| (name.to_owned(), json!(value)));
        ((*name).to_owned(), Value::Object(counts.into_iter().collect()))
    };
    let ports: Map<String, Value> = hosts.iter().zip(&outcome.ports).map(of_port).collect();
    let (mut whole, mut places) = (Map::new(), Map::new());
    outcome.engine.visit_counts(&mut |place, name, value| {
        let counts = match place {
            "" => &mut whole,
            place => {
                let counts = places.entry(place.to_owned()).or_insert_with(|| json!({}));
                counts.as_object_mut().expect("an object was inserted")
            }
        };
        counts.insert(name.to_owned(), json!(value));
    });
    json!({ "ports": ports, "switches": { "counts": whole, "places": places } })
}

pub(super) fn as_text<E: Engine>(hosts: &[&str], outcome: &Outcome<E>) -> String {
    let of_host = |(name, counts): (&&str, &PortCounts)| ((*name).to_owned(), counts.named().to_vec());
    let mut text = table("host", &hosts.iter().zip(&outcome.ports).map(of_host).collect::<Vec<_>>());
    let (mut outputs, mut others): (Vec<Row>, String) = (Vec::new(), String::new());
    outcome.engine.visit_counts(&mut |place, name, value| match outputs.last_mut() {
        // Outputs are named after both ends of their links.
        Some((last, counts)) if last == place => counts.push((name, value)),
        _ if place.contains(':') => outputs.push((place.to_owned(), vec![(name, value)])),
        _ if value > 0 => {
            let of = if place.is_empty() { String::new() } else { format!("{place}: ") };
            // Writing to a string cannot fail.
            let _ = writeln!(others, "{value:>10} {of}{name}");
        }
        _ => {}
    });
    if !outputs.is_empty() {
        text.push('\n');
        text += &table("output", &outputs);
    }
    if !others.is_empty() {
        text.push('\n');
        text += &others;
    }
    text
}

/// Name of a row, and its counters.
type Row = (String, Vec<(&'static str, u64)>);

/// Returns a table of counters, without columns of zeros, which tell nothing.
fn table(head: &str, rows: &[Row]) -> String {
    let columns: Vec<&str> =
        rows.first().map(|(_, counts)| counts.iter().map(|(name, _)| *name).collect()).unwrap_or_default();
    let is_used = |column: &usize| rows.iter().any(|(_, counts)| counts[*column].1 > 0);
    let used: Vec<usize> = (0..columns.len()).filter(is_used).collect();
    let width = rows.iter().map(|(name, _)| name.len()).chain([head.len()]).max().unwrap_or(0);
    let mut text = format!("{head:<width$}");
    for column in &used {
        let _ = write!(text, " {:>14}", columns[*column].replace('_', " "));
    }
    text.push('\n');
    for (name, counts) in rows {
        let _ = write!(text, "{name:<width$}");
        for column in &used {
            let _ = write!(text, " {:>14}", counts[*column].1);
        }
        text.push('\n');
    }
    text
}
