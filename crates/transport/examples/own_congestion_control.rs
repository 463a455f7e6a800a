//! Brings a congestion control of its own to the crate's loss recovery: a window that grows while the round trip stays
//! short and shrinks when it does not. A flow crosses a bottleneck of half its link's rate, once with the control and
//! once with none; the longest wait in the queue is printed.
//!
//! ```text
//! cargo run -p selvedge-transport --example own_congestion_control
//! ```

use std::collections::VecDeque;
use std::error::Error;

use selvedge_transport::congestion::none::{Control as NoControl, NoneConfig};
use selvedge_transport::recovery::irn::IrnConfig;
use selvedge_transport::{AnyRecovery, Congestion, Cx, Fabric, Receiver, SchemeParams, Sender, SenderParams, Signal};
use selvedge_units::{Bytes, Duration, Instant, Psn, Rate, Setting};
use selvedge_wire::{Ack, Data};

/// Window that keeps the round trip near a target.
struct Target {
    /// Bytes on the wire that may be in flight.
    window: f64,
    /// Size of a full frame in bytes.
    frame: f64,
    target: Duration,
}

impl Congestion for Target {
    fn on_signal(&mut self, _: &mut Cx<'_>, signal: Signal) {
        match signal {
            // In a round trip, four frames more or a quarter less.
            Signal::Acked { bytes, rtt, .. } => {
                let change = if rtt <= self.target { self.frame * 4.0 } else { self.window * -0.25 };
                self.window += change * bytes.get() as f64 / self.window;
            }
            Signal::Lost | Signal::TimedOut => self.window /= 2.0,
            Signal::Cnp | Signal::Sent { .. } => {}
        }
        self.window = self.window.max(self.frame);
    }
    fn window(&self) -> Bytes {
        Bytes::new(self.window as u64)
    }
}

/// Packets of the flow, of 1,024 bytes each.
const PACKETS: u64 = 5_000;
/// Rate of the sender's link, and that of the bottleneck behind it.
const RATES: [Rate; 2] = [Rate::from_gbps(100), Rate::from_gbps(50)];
/// Propagation delay of the path, one way.
const DELAY: Duration = Duration::from_us(10);
const FIRST: Psn = Psn::new(0);

/// Packets on their way, in order: the time of arrival, the packet, and the time at which its data packet left.
type Lane<T> = VecDeque<(Instant, T, Instant)>;

/// Removes and returns the first packet of `lane`, if it has arrived at `now`.
fn due<T>(lane: &mut Lane<T>, now: Instant) -> Option<(Instant, T, Instant)> {
    if lane.front()?.0 <= now { lane.pop_front() } else { None }
}

/// Runs the flow under `control`. Returns its completion time, and the longest wait of a packet at the bottleneck.
fn run(params: &SenderParams, control: impl Congestion) -> Result<[Duration; 2], Box<dyn Error>> {
    let mut sender = Sender::with(AnyRecovery::from(&params.recovery), control, params.frame, FIRST);
    let mut receiver = Receiver::new(&params.recovery, FIRST);
    let (mut sending, mut receiving) = (params.recovery.shared(), params.recovery.shared());
    let (mut data, mut acks): (Lane<Data>, Lane<Ack>) = Default::default();
    let [mut now, mut link_free, mut bottleneck_free] = [Instant::ZERO; 3];
    let mut longest = Duration::ZERO;

    sender.supply(PACKETS);
    loop {
        let mut cx = Cx::at(now);
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
        if link_free <= now
            && let Some(segment) = sender.poll_transmit(&mut cx, &mut sending, |_| params.frame)
        {
            let (psn, last) = (segment.seq.to_psn(FIRST), segment.seq + 1 == sender.supplied());
            let packet = Data { psn, payload: 1_024, last, retransmission: segment.retransmission, trimmed: false };
            link_free = now + RATES[0].time_for(params.frame);
            let leaves = link_free.max(bottleneck_free);
            longest = longest.max(leaves.since(link_free));
            bottleneck_free = leaves + RATES[1].time_for(params.frame);
            data.push_back((bottleneck_free + DELAY, packet, now));
        }
        let arrivals = [data.front().map(|(at, ..)| *at), acks.front().map(|(at, ..)| *at)];
        let events = arrivals.into_iter().chain([sender.poll_timeout(), (link_free > now).then_some(link_free)]);
        now = events.flatten().min().ok_or("nothing is under way")?.max(now);
    }
    Ok([now.since(Instant::ZERO), longest])
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let fabric = Fabric::of_path(RATES[0], DELAY * 2, 2, Bytes::new(1_024 + 62));
    // Without IRN's own cap on packets in flight, the window is congestion control's alone.
    let irn = IrnConfig { bdp_cap: Setting::Value(2_000), ..IrnConfig::default() };
    let params = SenderParams::resolve(irn, NoneConfig::default(), &fabric)?;
    let frame = params.frame.get() as f64;
    let own = Target { window: frame * 50.0, frame, target: DELAY * 2 + Duration::from_us(3) };
    let [done, wait] = run(&params, own)?;
    println!("own control: done after {done}, longest wait at the bottleneck {wait}");
    let [done, longer_wait] = run(&params, NoControl)?;
    println!("no control:  done after {done}, longest wait at the bottleneck {longer_wait}");
    if wait < longer_wait { Ok(()) } else { Err("the control does not keep the queue short".into()) }
}
