//! Bottleneck in real time: packets pass from one device to another, at a rate, after a delay.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::{AROUND_IP, Bottleneck};

/// Packet, and the time of its arrival.
type Flying = (Instant, Vec<u8>);

/// Total delay in ns by which packets were delivered late, because of a busy machine, and the number of packets.
#[derive(Clone, Default)]
pub(super) struct Lateness(Arc<[AtomicU64; 2]>);

impl Lateness {
    fn note(&self, late: Duration) {
        let [total_ns, packets] = &*self.0;
        total_ns.fetch_add(late.as_nanos() as u64, Ordering::Relaxed);
        packets.fetch_add(1, Ordering::Relaxed);
    }
    /// Returns the mean lateness, in microseconds.
    pub(super) fn mean_us(&self) -> f64 {
        let [total_ns, packets] = &*self.0;
        total_ns.load(Ordering::Relaxed) as f64 / 1e3 / packets.load(Ordering::Relaxed).max(1) as f64
    }
}

/// Carries packets from `from` to `to` until one of the devices is gone. The data packets with the numbers in the first
/// list are lost behind the queue, those in the second arrive late.
pub(super) fn start(from: File, to: File, bottleneck: Bottleneck, fates: [Vec<u64>; 2], late: Lateness) -> Result<()> {
    let (send, receive) = channel();
    thread::Builder::new().name("bottleneck".into()).spawn(move || enqueue(from, &send, bottleneck, &fates))?;
    thread::Builder::new().name("propagation".into()).spawn(move || deliver(to, &receive, &late))?;
    Ok(())
}

/// Delays packets from the kernel by their serialisation in one queue.
fn enqueue(mut from: File, flying: &Sender<Flying>, bottleneck: Bottleneck, [drops, late]: &[Vec<u64>; 2]) {
    let delay = Duration::from_millis(bottleneck.rtt_ms) / 2;
    let on_wire = |bytes: u64| Duration::from_nanos(bytes * 8 * 1_000_000_000 / bottleneck.rate);
    let mut buffer = [0; 2_048];
    let mut free_at = now();
    let mut data_packets = 0;
    while let Ok(length) = from.read(&mut buffer) {
        let now = now();
        let packet = &buffer[..length];
        let bytes = length as u64 + AROUND_IP;
        if free_at.saturating_duration_since(now) + on_wire(bytes) > on_wire(bottleneck.buffer) {
            continue; // no room
        }
        free_at = free_at.max(now) + on_wire(bytes);
        let mut arrival = free_at + delay;
        if carries_data(packet) {
            data_packets += 1;
            let is_in = |list: &[u64]| list.binary_search(&(data_packets - 1)).is_ok();
            if is_in(drops) {
                continue;
            }
            if is_in(late) {
                arrival += Duration::from_millis(bottleneck.late_ms);
            }
        }
        if flying.send((arrival, packet.to_vec())).is_err() {
            return;
        }
    }
}

/// Delivers each packet at its time.
fn deliver(mut to: File, flying: &Receiver<Flying>, late: &Lateness) {
    let mut waiting: Waiting = BinaryHeap::new();
    for number in 0.. {
        // Packets that arrive later may be due earlier.
        let next = match waiting.peek() {
            Some(Reverse((at, ..))) => flying.recv_timeout(at.saturating_duration_since(now())),
            None => flying.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match next {
            Ok((at, packet)) => waiting.push(Reverse((at, number, packet))),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        while let Some(Reverse((at, _, packet))) = pop_due(&mut waiting) {
            late.note(now().saturating_duration_since(at));
            if to.write_all(&packet).is_err() {
                return;
            }
        }
    }
}

/// Packets in the order of their arrival, and of their departure.
type Waiting = BinaryHeap<Reverse<(Instant, u64, Vec<u8>)>>;

/// Removes and returns the first packet, if it has arrived.
fn pop_due(waiting: &mut Waiting) -> Option<Reverse<(Instant, u64, Vec<u8>)>> {
    let Reverse((at, ..)) = waiting.peek()?;
    if *at <= now() { waiting.pop() } else { None }
}

/// Returns whether an IPv4 packet is a TCP segment with payload.
fn carries_data(packet: &[u8]) -> bool {
    let ip_header = usize::from(packet.first().copied().unwrap_or_default() & 0x0f) * 4;
    let is_tcp = packet.get(9) == Some(&6);
    let tcp_header = packet.get(ip_header + 12).map_or(0, |offset| usize::from(offset >> 4) * 4);
    is_tcp && packet.len() > ip_header + tcp_header
}

#[expect(clippy::disallowed_methods, reason = "the kernel's TCP runs in real time")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_told_from_acknowledgements() {
        let segment = |length: usize| {
            let mut packet = vec![0; length];
            (packet[0], packet[9], packet[32]) = (0x45, 6, 0x80); // IPv4, TCP with time stamps
            packet
        };
        assert!(!carries_data(&segment(52)) && carries_data(&segment(53)));
        assert!(!carries_data(&[]) && !carries_data(&[0x45; 20]));
    }
}
