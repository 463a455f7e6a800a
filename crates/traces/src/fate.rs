//! Drops of packets at their arrival.

use selvedge_sim::record::{Event, What};
use selvedge_telemetry::DropReason;

/// Returns the events, each with the reason for which the packet that has just arrived is dropped next, if it is.
pub(crate) fn with_fates(events: &[Event]) -> impl Iterator<Item = (&Event, Option<DropReason>)> {
    let nexts = events[1.min(events.len())..].iter().map(Some).chain([None]);
    events.iter().zip(nexts).map(|(event, next)| (event, next.and_then(|next| fate(event, next))))
}

/// Returns whether a packet dropped for this reason never arrived at the end of the link.
pub(crate) fn is_lost_on_link(reason: DropReason) -> bool {
    match reason {
        DropReason::LinkLoss | DropReason::LinkDown | DropReason::Corrupt => true,
        DropReason::BufferFull
        | DropReason::HeadroomFull
        | DropReason::NoRoute
        | DropReason::UnknownQp
        | DropReason::Trimmed
        | DropReason::Surplus => false,
    }
}

fn fate(event: &Event, next: &Event) -> Option<DropReason> {
    match (&event.what, &next.what) {
        (What::Arrived { port: at, packet: arrived, .. }, What::Dropped { port, packet, reason })
            if port == at && packet == arrived =>
        {
            Some(*reason)
        }
        _ => None,
    }
}
