//! Places and pauses of several flows, merged.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use selvedge_units::{Duration, PortId};

use crate::blame::{Cause, PauseTree};
use crate::explanation::{DelayingPort, DropPlace, Explanation};

pub(super) fn merged_places(explanations: &[Explanation]) -> Vec<DelayingPort> {
    let mut sum: BTreeMap<PortId, DelayingPort> = BTreeMap::new();
    for place in explanations.iter().flat_map(|explanation| &explanation.places) {
        let none = DelayingPort { port: place.port, queueing: Duration::ZERO, pause: Duration::ZERO };
        let entry = sum.entry(place.port).or_insert(none);
        entry.queueing += place.queueing;
        entry.pause += place.pause;
    }
    let mut places: Vec<DelayingPort> = sum.into_values().collect();
    places.sort_by_key(|place| (Reverse(place.queueing + place.pause), place.port));
    places
}

pub(super) fn merged_drops(explanations: &[Explanation]) -> Vec<DropPlace> {
    let mut sum = BTreeMap::new();
    for drop in explanations.iter().flat_map(|explanation| &explanation.drops) {
        *sum.entry((drop.port, drop.reason)).or_insert(0) += drop.packets;
    }
    let drop = |((port, reason), packets)| DropPlace { port, reason, packets };
    let mut drops: Vec<DropPlace> = sum.into_iter().map(drop).collect();
    drops.sort_by_key(|drop| (Reverse(drop.packets), drop.port, drop.reason));
    drops
}

/// Merges the trees of pauses of each port.
pub(super) fn merged_trees(explanations: &[Explanation]) -> Vec<PauseTree> {
    let mut sum: BTreeMap<PortId, PauseTree> = BTreeMap::new();
    for tree in explanations.iter().flat_map(|explanation| &explanation.pauses) {
        let none = PauseTree { port: tree.port, time: Duration::ZERO, causes: Vec::new() };
        let entry = sum.entry(tree.port).or_insert(none);
        entry.time += tree.time;
        merge(&mut entry.causes, &tree.causes);
    }
    let mut trees: Vec<PauseTree> = sum.into_values().collect();
    trees.sort_by_key(|tree| (Reverse(tree.time), tree.port));
    trees
}

fn merge(into: &mut Vec<Cause>, causes: &[Cause]) {
    for cause in causes {
        let Some(same) = into.iter_mut().find(|other| other.port == cause.port) else {
            into.push(cause.clone());
            continue;
        };
        same.time += cause.time;
        same.congested += cause.congested;
        if cause.waiting > same.waiting {
            (same.waiting, same.inputs) = (cause.waiting, cause.inputs);
        }
        merge(&mut same.causes, &cause.causes);
    }
    into.sort_by_key(|cause| (Reverse(cause.time), cause.port));
}
