//! Lets an IRN sender and an IRN receiver exchange a megabyte in virtual time over a path that loses one packet in
//! fifty, in bursts, and prints how the loss was repaired.
//!
//! ```text
//! cargo run -p selvedge-transport --example two_engines
//! ```

use std::collections::VecDeque;
use std::error::Error;

use selvedge_transport::congestion::none::NoneConfig;
use selvedge_transport::recovery::irn::IrnConfig;
use selvedge_transport::{Cx, Fabric, Receiver, SchemeParams, Sender, SenderParams};
use selvedge_units::{Bytes, Chance, Channel, Domain, Duration, Instant, Psn, Rate, Rng, TwoStates};
use selvedge_wire::{Ack, Data};

/// Packets of the transfer, of 1,024 bytes each.
const PACKETS: u64 = 1_000;
/// Propagation delay of the path, one way.
const DELAY: Duration = Duration::from_us(10);
/// PSN of the first packet.
const FIRST: Psn = Psn::new(0x00ff_ffff);

/// Packets on their way, in order: the time of arrival, the packet, and the time at which its data packet left.
type Lane<T> = VecDeque<(Instant, T, Instant)>;

/// Removes and returns the first packet of `lane`, if it has arrived at `now`.
fn due<T>(lane: &mut Lane<T>, now: Instant) -> Option<(Instant, T, Instant)> {
    if lane.front()?.0 <= now { lane.pop_front() } else { None }
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let rate = Rate::from_gbps(100);
    let fabric = Fabric::of_path(rate, DELAY * 2, 2, Bytes::new(1_024 + 62));
    let params = SenderParams::resolve(IrnConfig::default(), NoneConfig::default(), &fabric)?;
    let mut sender = Sender::new(&params, FIRST);
    let mut receiver = Receiver::new(&params.recovery, FIRST);
    // State that all queue pairs of a NIC share; one set per end.
    let (mut sending, mut receiving) = (params.recovery.shared(), params.recovery.shared());

    let bursts = TwoStates::bursts(3.0, Chance::ratio(1, 50)).ok_or("such bursts are possible")?;
    let mut lossy = Channel::new(bursts, Rng::stream(1, Domain::Impairment, 0));
    let (mut data, mut acks): (Lane<Data>, Lane<Ack>) = Default::default();
    let (mut now, mut link_free, mut lost) = (Instant::ZERO, Instant::ZERO, 0);

    sender.supply(PACKETS);
    loop {
        let mut cx = Cx::at(now);
        // Input: data packets at the receiver, acknowledgements and timers at the sender.
        while let Some((_, packet, sent_at)) = due(&mut data, now) {
            let reply = receiver.handle_data(&mut cx, &mut receiving, &packet, false);
            acks.extend(reply.ack.map(|ack| (now + DELAY, ack, sent_at)));
        }
        while let Some((_, ack, sent_at)) = due(&mut acks, now) {
            sender.handle_ack(&mut cx, &mut sending, &ack, sent_at);
        }
        if sender.is_done() {
            break;
        }
        sender.handle_timeout(&mut cx, &mut sending);
        // Output: one packet, if the link is free and the sender has one.
        if link_free <= now
            && let Some(segment) = sender.poll_transmit(&mut cx, &mut sending, |_| params.frame)
        {
            link_free = now + rate.time_for(params.frame);
            let packet = Data {
                psn: segment.seq.to_psn(FIRST),
                payload: 1_024,
                last: segment.seq + 1 == sender.supplied(),
                retransmission: segment.retransmission,
                trimmed: false,
            };
            if lossy.loses() { lost += 1 } else { data.push_back((link_free + DELAY, packet, now)) }
        }
        // Virtual time goes to the next event: an arrival, a deadline, or a free link.
        let arrivals = [data.front().map(|(at, ..)| *at), acks.front().map(|(at, ..)| *at)];
        let events = arrivals.into_iter().chain([sender.poll_timeout(), (link_free > now).then_some(link_free)]);
        now = events.flatten().min().ok_or("nothing is under way")?.max(now);
    }
    let stats = sender.stats();
    println!("{PACKETS} packets delivered by {now}; {} received in order", receiver.expected().index());
    println!("{lost} lost, {} resent, {} timeouts", stats.retransmissions, stats.timeouts);
    if receiver.expected().index() == PACKETS && stats.retransmissions >= lost {
        Ok(())
    } else {
        Err("a lost packet was not sent again".into())
    }
}
