//! Text about the events that unfinished flows waited for.

use selvedge_telemetry::TimePart;

use super::page::{Page, at_us, number};
use crate::explanation::{Awaited, Explanation};
use crate::names::Names;
use crate::pauses::Stop;

pub(super) fn write_awaited(page: &mut Page, explanations: &[Explanation], names: &Names) {
    let unfinished = explanations.iter().filter_map(|one| one.awaited.map(|awaited| (number(one), awaited)));
    let lines: Vec<(String, String)> = unfinished.map(|(number, awaited)| (number, sentence(awaited, names))).collect();
    if lines.is_empty() {
        return;
    }
    page.head(format_args!("what these waited for when the run ended"));
    let width = lines.iter().map(|(number, _)| number.len()).max().unwrap_or(0);
    for (number, sentence) in lines {
        page.put(format_args!("  {number:>width$}  {sentence}"));
    }
}

/// Returns a sentence such as "a packet waits for s0 -> s1 since 12.300 us, paused since 10.100 us".
pub(super) fn sentence(awaited: Awaited, names: &Names) -> String {
    match awaited {
        Awaited::Port { port, since, stop } => {
            let who = if names.is_host(port) { "the sender" } else { "a packet" };
            let stop = match stop {
                Some(Stop::Paused(since)) => format!(", paused since {} us", at_us(since)),
                Some(Stop::Down(since)) => format!(", whose link is down since {} us", at_us(since)),
                None => String::new(),
            };
            format!("{who} waits for {} since {} us{stop}", names.port(port), at_us(since))
        }
        Awaited::Link { port } => format!("a packet is on its way, {}", names.port(port)),
        Awaited::Switch { port, since } => {
            format!("a packet is held at {} since {} us, until one before it comes", names.entry(port), at_us(since))
        }
        Awaited::Sender { part, since } => format!("the sender waits for {} since {} us", reason(part), at_us(since)),
    }
}

fn reason(part: TimePart) -> &'static str {
    match part {
        TimePart::Pacing => "its time to send (pacing)",
        TimePart::Window => "congestion control's window",
        TimePart::Cap => "the limit on packets in flight",
        TimePart::Recovery | TimePart::Timeout => "news of what was lost, or a timeout",
        _ => "its link",
    }
}
