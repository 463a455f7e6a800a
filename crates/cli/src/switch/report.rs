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
    let mut text = format!("{:<12}", "port");
    let columns = PortCounts::default().named().map(|(name, _)| name);
    // Columns of zeros tell nothing.
    let is_used = |column: usize| outcome.ports.iter().any(|counts| counts.named()[column].1 > 0);
    let used: Vec<usize> = (0..columns.len()).filter(|column| is_used(*column)).collect();
    // Writing to a string cannot fail.
    for column in &used {
        let _ = write!(text, " {:>14}", columns[*column].replace('_', " "));
    }
    text.push('\n');
    for (name, counts) in hosts.iter().zip(&outcome.ports) {
        let _ = write!(text, "{name:<12}");
        for column in &used {
            let _ = write!(text, " {:>14}", counts.named()[*column].1);
        }
        text.push('\n');
    }
    outcome.engine.visit_counts(&mut |place, name, value| {
        if value > 0 {
            let _ = writeln!(text, "{:<12} {:>14} {value:>14}", if place.is_empty() { "all" } else { place }, name);
        }
    });
    text
}
