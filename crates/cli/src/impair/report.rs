//! Report of the impairments applied to packets, for people and programs.

use std::fmt::Write as _;

use selvedge_dataplane::impair::{Class, Counts, Plan, Report};
use serde_json::{Map, Value, json};

/// Returns the names of both ends, sender first, for a direction.
fn way(plan: &Plan, direction: usize) -> [&str; 2] {
    [&plan.names[direction], &plan.names[1 - direction]]
}

pub(super) fn as_json(plan: &Plan, report: &Report) -> Value {
    let of_class = |counts: &Counts| counts.named().map(|(name, value)| (name.to_owned(), json!(value)));
    let directions = [0, 1].map(|direction| {
        let [from, to] = way(plan, direction);
        let classes = Class::ALL.iter().zip(&report.counts[direction]);
        let packets: Map<String, Value> = classes
            .map(|(class, counts)| (class.name().to_owned(), Value::Object(of_class(counts).into_iter().collect())))
            .collect();
        json!({ "from": from, "to": to, "packets": packets, "overflowed": report.overflowed[direction] })
    });
    json!({ "seed": plan.seed, "directions": directions })
}

pub(super) fn as_text(plan: &Plan, report: &Report) -> String {
    let mut text = format!("{:<22}", format!("packets, seed {}", plan.seed));
    // Writing to a string cannot fail.
    for (name, _) in Counts::default().named() {
        let _ = write!(text, " {:>10}", name.replace("corrupted_payload", "payload"));
    }
    text.push('\n');
    for direction in [0, 1] {
        let [from, to] = way(plan, direction);
        for (class, counts) in Class::ALL.iter().zip(&report.counts[direction]).filter(|(_, counts)| counts.sent > 0) {
            let _ = write!(text, "{:<22}", format!("{from} -> {to} {}", class.name()));
            for (_, value) in counts.named() {
                let _ = write!(text, " {value:>10}");
            }
            text.push('\n');
        }
        if report.overflowed[direction] > 0 {
            let _ = writeln!(
                text,
                "{} packets from {from} were dropped before they came to the device: it was too slow for them",
                report.overflowed[direction]
            );
        }
    }
    text
}
