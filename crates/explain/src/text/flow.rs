//! Text about one flow, in detail.

use super::awaited::sentence;
use super::page::{Page, count, number, percent, us};
use super::pauses::write_pauses;
use super::places::{write_drops, write_places};
use crate::explanation::Explanation;
use crate::names::Names;

/// Renders everything known about one flow.
pub fn render_flow(explanation: &Explanation, names: &Names) -> String {
    let mut page = Page::default();
    write_facts(&mut page, explanation, names);
    write_parts(&mut page, explanation);
    write_places(&mut page, &explanation.places, names);
    write_drops(&mut page, &explanation.drops, names);
    write_last(&mut page, explanation, names);
    write_pauses(&mut page, &explanation.pauses, names);
    page.text()
}

fn write_facts(page: &mut Page, explanation: &Explanation, names: &Names) {
    let Explanation { flow, parts, sent, again, timeouts, .. } = explanation;
    let (from, to) = (names.host(flow.src), names.host(flow.dst));
    let packets = count(flow.packets, "packet");
    page.put(format_args!("flow {}: {from} -> {to}, {}, {packets}", number(explanation), flow.size));
    let (start, took, ideal) = (flow.start.as_us_f64(), us(parts.total()), us(flow.ideal));
    let (slowdown, unfinished) = (explanation.slowdown(), explanation.awaited.is_some());
    let took = if unfinished { format!("had not finished after {took} us") } else { format!("took {took} us") };
    page.put(format_args!("started at {start:.3} us, {took}: {slowdown:.2} times its ideal, {ideal} us"));
    let dropped: u64 = explanation.drops.iter().map(|drop| drop.packets).sum();
    let (sent, timeouts) = (count(*sent, "packet"), count(*timeouts, "timeout"));
    page.put(format_args!("{sent} sent, {again} of them again; {dropped} dropped; {timeouts}"));
    if let Some(awaited) = explanation.awaited {
        page.put(format_args!("when the run ended, {}", sentence(awaited, names)));
    }
}

fn write_parts(page: &mut Page, explanation: &Explanation) {
    let total = explanation.parts.total();
    page.head(format_args!("where the time went"));
    for (part, time) in explanation.parts.iter().filter(|(_, time)| !time.is_zero()) {
        let share = percent(time, total);
        let bar = part.letter().to_string().repeat((share * 0.4).round() as usize);
        page.put(format_args!("  {:<14} {:>13} us  {share:>5.1} %  {bar}", part.name(), us(time)));
    }
    page.put(format_args!("  {:<14} {:>13} us", "total", us(total)));
}

fn write_last(page: &mut Page, explanation: &Explanation, names: &Names) {
    if explanation.last.is_empty() {
        return;
    }
    let which = if explanation.awaited.is_some() { "that it waits for" } else { "that finished it" };
    page.head(format_args!(
        "{:<38} {:>12} {:>10} {:>10} {:>10} {:>8}",
        format!("the packet {which}, us"),
        "at",
        "own",
        "queueing",
        "pause",
        "wire"
    ));
    for hop in &explanation.last {
        let (at, wire) = (hop.from.as_us_f64(), us(hop.serialisation + hop.propagation));
        let (own, queueing, pause) = (us(hop.own), us(hop.queueing), us(hop.pause));
        let port = names.port(hop.port);
        page.put(format_args!("  {port:<36} {at:>12.3} {own:>10} {queueing:>10} {pause:>10} {wire:>8}"));
    }
}
