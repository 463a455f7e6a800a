//! Attribution of a real flow's time: every moment is assigned to one part.

use std::collections::BTreeMap;

use selvedge_telemetry::DropReason;
use selvedge_units::{Duration, Instant, PortId};

use super::path::{PacketPath, PathEnd};
use super::recording::RealRecording;
use super::report::{Gap, LostAt, PacketTimes, QueueTime, RealFlow, RealPart, RealParts};
use super::streams::Stream;

/// Number of the sender's longest silences that are reported.
const GAPS: usize = 3;

/// The two directions of a flow: that of its data, and that of answers.
struct Flow<'a> {
    recording: &'a RealRecording,
    data: usize,
    answers: Option<usize>,
}

/// Times by part, and by port.
#[derive(Default)]
struct Sums {
    parts: RealParts,
    queues: BTreeMap<PortId, QueueTime>,
}

/// Packets of one direction.
struct Side<'a> {
    stream: &'a Stream,
    /// Arrivals of its packets at the other host: time and packet, in order.
    arrivals: Vec<(Instant, u32)>,
    /// Idle time of the host's link between two packets of the flow up to which the host counts as sending without a
    /// pause.
    idle: Duration,
}

impl RealRecording {
    /// Explains all flows, in the order of their first packets.
    pub(super) fn flows(&self) -> Vec<RealFlow> {
        let all = &self.streams.all;
        let firsts = (0..all.len()).filter(|&at| all[at].partner.is_none_or(|partner| partner > at));
        let mut flows: Vec<RealFlow> = firsts.map(|first| Flow::of(self, first).explain()).collect();
        flows.sort_by_key(|flow| flow.start_ps);
        (0..).zip(&mut flows).for_each(|(number, flow)| flow.flow = number);
        flows
    }

    fn stream_bytes(&self, stream: usize) -> u64 {
        let paths = self.streams.all[stream].paths.iter();
        paths.map(|&path| u64::from(self.paths[path as usize].payload)).sum()
    }
}

impl<'a> Flow<'a> {
    /// Returns the flow of a stream and its partner: data is what has more bytes.
    fn of(recording: &'a RealRecording, first: usize) -> Self {
        match recording.streams.all[first].partner {
            Some(other) if recording.stream_bytes(other) > recording.stream_bytes(first) => {
                Self { recording, data: other, answers: Some(first) }
            }
            other => Self { recording, data: first, answers: other },
        }
    }

    fn path(&self, at: u32) -> &'a PacketPath {
        &self.recording.paths[at as usize]
    }

    fn stream(&self, at: usize) -> &'a Stream {
        &self.recording.streams.all[at]
    }

    fn is_own(&self, stream: Option<u32>) -> bool {
        stream.is_some_and(|stream| stream as usize == self.data || Some(stream as usize) == self.answers)
    }

    fn side(&self, stream: usize) -> Side<'a> {
        let stream = self.stream(stream);
        let all = stream.paths.iter().chain(&stream.copies);
        let mut arrivals: Vec<(Instant, u32)> =
            all.filter_map(|&at| self.path(at).delivered().map(|time| (time, at))).collect();
        arrivals.sort_unstable();
        let longest = stream.paths.iter().filter_map(|&at| self.path(at).hops.first());
        let longest = longest.map(|hop| hop.serialisation).max().unwrap_or(Duration::ZERO);
        Side { stream, arrivals, idle: longest / 2 }
    }

    fn explain(&self) -> RealFlow {
        let data = self.side(self.data);
        let answers = self.answers.map(|at| self.side(at));
        let both = || data.stream.paths.iter().chain(answers.iter().flat_map(|side| &side.stream.paths));
        let start = both().map(|&at| self.path(at).entered).min().unwrap_or(Instant::ZERO);
        let is_data = |at: &&(Instant, u32)| self.path(at.1).is_data;
        let last = data.arrivals.iter().rev().find(is_data).or(data.arrivals.last()).copied();
        let mut sums = Sums::default();
        if let Some(last) = last {
            self.follow(start, last, [Some(&data), answers.as_ref()], &mut sums);
            assert_eq!(sums.parts.total(), last.0 - start, "the parts of a real flow add up");
        }
        let partner = answers.as_ref().map(|side| side.stream);
        let (ports, names) = (&self.recording.ports, &self.recording.names);
        let sent: Vec<&PacketPath> = data.stream.paths.iter().map(|&at| self.path(at)).filter(|j| j.is_data).collect();
        let mut packets = Sums::default();
        let mut times = Vec::new();
        for &(at, path) in data.arrivals.iter().filter(is_data) {
            let path = self.path(path);
            self.pass(path, at, &mut packets);
            times.push(at - path.entered);
        }
        times.sort_unstable();
        RealFlow {
            flow: 0,
            name: data.stream.name(partner),
            from: ports[data.stream.port.index()].node.to_string(),
            to: ports[data.stream.to.index()].node.to_string(),
            start_ps: start.as_ps(),
            end_ps: last.map(|last| last.0.as_ps()),
            packets: sent.len() as u64,
            bytes: sent.iter().filter(|path| !path.again).map(|path| u64::from(path.payload)).sum(),
            arrived: times.len() as u64,
            again: sent.iter().filter(|path| path.again).count() as u64,
            copies: data.stream.copies.len() as u64,
            answers: partner.map_or(0, |stream| stream.paths.len() as u64),
            parts: sums.parts,
            queues: queues(sums.queues, names),
            per_packet: PacketTimes::new(packets.parts, queues(packets.queues, names), &times),
            lost: self.lost(&data, answers.as_ref()),
            marks: self.places(&data, |path| path.marked),
            trims: self.places(&data, |path| path.trimmed),
            gaps: self.gaps(&data),
        }
    }

    /// Follows the chain of events back from the packet that arrived last to the `start` of the flow.
    fn follow(&self, start: Instant, last: (Instant, u32), sides: [Option<&Side<'a>>; 2], sums: &mut Sums) {
        let (mut at, mut packet, mut side) = (last.0, last.1, 0);
        loop {
            let mut path = self.path(packet);
            self.pass(path, at, sums);
            if let Some(original) = path.copy_of {
                // The switch has made the copy after the host had sent the packet.
                let made = path.entered;
                (packet, path) = (original, self.path(original));
                sums.parts[RealPart::Held] += made - path.entered;
            }
            let Some(from) = sides[side] else { return };
            let (begin, is_again) = self.busy_since(from, packet, path.entered, sums);
            // A packet of the other direction had arrived at this host before.
            let before = sides[1 - side].and_then(|other| {
                let count = other.arrivals.partition_point(|(time, _)| *time <= begin);
                count.checked_sub(1).map(|nth| other.arrivals[nth])
            });
            let since = before.map_or(start, |(time, _)| time);
            let own = match (side, is_again) {
                (0, true) => RealPart::Resend,
                (0, false) => RealPart::Sender,
                _ => RealPart::Receiver,
            };
            sums.parts[own] += begin - since;
            let Some(before) = before else { return };
            (at, packet, side) = (before.0, before.1, 1 - side);
        }
    }

    /// Adds the time since which a host has sent packets of the flow without a pause until it sent `packet`; returns
    /// that time, and whether the first of these packets is a retransmission.
    fn busy_since(&self, side: &Side<'a>, packet: u32, entered: Instant, sums: &mut Sums) -> (Instant, bool) {
        let paths = &side.stream.paths;
        let mut nth = paths.partition_point(|&at| at < packet);
        let (mut begin, mut link) = (entered, Duration::ZERO);
        while nth > 0 {
            let before = self.path(paths[nth - 1]);
            let left = before.left_host().min(begin);
            let others = self.recording.busy(side.stream.port, left, begin, |stream| !self.is_own(stream));
            if (begin - left).saturating_sub(others) > side.idle {
                break;
            }
            link += others;
            begin = before.entered;
            nth -= 1;
        }
        sums.parts[RealPart::Link] += link;
        sums.parts[RealPart::Serialisation] += (entered - begin).saturating_sub(link);
        (begin, paths.get(nth).is_some_and(|&at| self.path(at).again))
    }

    /// Adds the time of a packet that its host was given at `delivered`, from its entry on.
    fn pass(&self, path: &PacketPath, delivered: Instant, sums: &mut Sums) {
        for hop in &path.hops {
            let wait = hop.sent - hop.ready;
            let pause = self.recording.paused(hop.port, path.class, hop.ready, hop.sent).min(wait);
            let own = self.recording.busy(hop.port, hop.ready, hop.sent, |stream| self.is_own(stream));
            let own = own.min(wait - pause);
            let others = wait - pause - own;
            let arrived = hop.arrived.unwrap_or(delivered);
            let parts = &mut sums.parts;
            parts[RealPart::Held] += hop.ready - hop.from;
            parts[RealPart::Pause] += pause;
            parts[RealPart::Own] += own;
            parts[RealPart::Queueing] += others;
            parts[RealPart::Serialisation] += hop.serialisation;
            parts[RealPart::Propagation] += arrived - hop.left();
            if !wait.is_zero() {
                let queue = sums.queues.entry(hop.port).or_default();
                queue.others_ps += others.as_ps();
                queue.own_ps += own.as_ps();
                queue.pause_ps += pause.as_ps();
            }
        }
        sums.parts[RealPart::Late] += delivered - path.reached;
    }

    /// Returns where packets of both directions were dropped, the most first.
    fn lost(&self, data: &Side<'a>, answers: Option<&Side<'a>>) -> Vec<LostAt> {
        let mut lost: BTreeMap<(PortId, &'static str), LostAt> = BTreeMap::new();
        let sides = [Some(data), answers];
        for (is_data, side) in [true, false].into_iter().zip(sides).filter_map(|(d, side)| side.map(|side| (d, side))) {
            for &at in side.stream.paths.iter().chain(&side.stream.copies) {
                let PathEnd::Dropped(port, reason) = self.path(at).end else { continue };
                let place = lost.entry((port, reason.name())).or_insert_with(|| {
                    let info = &self.recording.ports[port.index()];
                    let (node, from) = (info.node.to_string(), info.peer.to_string());
                    let on_link = matches!(reason, DropReason::LinkLoss | DropReason::Corrupt | DropReason::LinkDown);
                    LostAt { node, from, on_link, reason: reason.name(), data: 0, answers: 0 }
                });
                if is_data { place.data += 1 } else { place.answers += 1 }
            }
        }
        let mut lost: Vec<LostAt> = lost.into_values().collect();
        lost.sort_by_key(|place| std::cmp::Reverse(place.data + place.answers));
        lost
    }

    /// Counts packets of data by the port that `which` returns.
    fn places(&self, side: &Side<'a>, which: impl Fn(&PacketPath) -> Option<PortId>) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for port in side.stream.paths.iter().filter_map(|&at| which(self.path(at))) {
            *counts.entry(self.recording.names[port.index()].clone()).or_default() += 1;
        }
        counts
    }

    /// Returns the longest times in which the sender sent nothing.
    fn gaps(&self, side: &Side<'a>) -> Vec<Gap> {
        let pairs = side.stream.paths.windows(2).map(|pair| (self.path(pair[0]), self.path(pair[1])));
        let gap = |(before, after): (&PacketPath, &PacketPath)| {
            let left = before.left_host();
            let gap = Gap {
                start_ps: left.as_ps(),
                length_ps: after.entered.since(left).as_ps(),
                before_resending: after.again,
            };
            (gap.length_ps > side.idle.as_ps()).then_some(gap)
        };
        let mut gaps: Vec<Gap> = pairs.filter_map(gap).collect();
        gaps.sort_by_key(|gap| (std::cmp::Reverse(gap.length_ps), gap.start_ps));
        gaps.truncate(GAPS);
        gaps
    }
}

/// Returns the times of queues by name, the longest first.
fn queues(times: BTreeMap<PortId, QueueTime>, names: &[String]) -> Vec<QueueTime> {
    let named = times.into_iter().map(|(port, time)| QueueTime { port: names[port.index()].clone(), ..time });
    let mut queues: Vec<QueueTime> = named.collect();
    queues.sort_by_key(|queue| std::cmp::Reverse(queue.total_ps()));
    queues
}
