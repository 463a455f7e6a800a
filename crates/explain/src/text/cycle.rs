//! Text about a PFC deadlock.

use super::page::{Page, at_us, named};
use crate::cycle::{Cycle, Held};
use crate::names::Names;

/// Number of flows shown at each port.
const SHOWN: usize = 5;

/// Renders the ports of a cycle in the order of waiting, and the packets that wait at each.
pub fn render_cycle(cycle: &Cycle, names: &Names) -> String {
    let mut page = Page::default();
    let (at, since) = (at_us(cycle.at), at_us(cycle.since));
    page.put(format_args!("PFC deadlock, found at {at} us: nothing in this cycle has moved since {since} us"));
    page.put(format_args!("each port is paused until the next one sends, the last until the first does"));
    let heads = ["waiting", "packets", "since us", "paused since us"];
    page.head(format_args!("{:<38} {:>12} {:>9} {:>12} {:>16}", "port", heads[0], heads[1], heads[2], heads[3]));
    for stuck in &cycle.ports {
        let (waiting, packets) = (stuck.waiting.to_string(), stuck.packets);
        let first = stuck.flows.iter().map(|held| held.since).min().map(at_us).unwrap_or_default();
        let paused = stuck.paused.map(at_us).unwrap_or_default();
        page.put(format_args!("  {:<36} {waiting:>12} {packets:>9} {first:>12} {paused:>16}", names.port(stuck.port)));
        for held in stuck.flows.iter().take(SHOWN) {
            write_held(&mut page, held, names);
        }
        if let Some(more) = stuck.flows.len().checked_sub(SHOWN).filter(|more| *more > 0) {
            page.put(format_args!("    and {more} more"));
        }
    }
    page.text()
}

fn write_held(page: &mut Page, held: &Held, names: &Names) {
    let way = format!("{} -> {}", names.host(held.src), names.host(held.dst));
    let whose = held.flow.map_or_else(|| way.clone(), |flow| format!("flow {}: {way}", named(flow)));
    page.put(format_args!("    {whose:<47} {:>9} {:>12}", held.packets, at_us(held.since)));
}
