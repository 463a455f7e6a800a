//! Text about the places where packets waited and were dropped.

use super::page::{Page, count, us};
use crate::explanation::{DelayingPort, DropPlace};
use crate::names::Names;

/// Number of places shown.
const SHOWN: usize = 8;

pub(super) fn write_places(page: &mut Page, places: &[DelayingPort], names: &Names) {
    if places.is_empty() {
        return;
    }
    page.head(format_args!("{:<38} {:>12} {:>12}", "waited for others at", "queueing us", "pause us"));
    for place in places.iter().take(SHOWN) {
        let (queueing, pause) = (us(place.queueing), us(place.pause));
        page.put(format_args!("  {:<36} {queueing:>12} {pause:>12}", names.port(place.port)));
    }
    write_rest(page, places.len());
}

pub(super) fn write_drops(page: &mut Page, drops: &[DropPlace], names: &Names) {
    if drops.is_empty() {
        return;
    }
    page.head(format_args!("dropped at"));
    for drop in drops.iter().take(SHOWN) {
        let packets = count(drop.packets, "packet");
        page.put(format_args!("  {:<36} {packets}, {}", names.entry(drop.port), drop.reason.name()));
    }
    write_rest(page, drops.len());
}

fn write_rest(page: &mut Page, places: usize) {
    if places > SHOWN {
        page.put(format_args!("  and {} more", places - SHOWN));
    }
}
