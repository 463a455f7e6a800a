//! An RNIC whose other side sends arbitrary packets at arbitrary times, and whose application posts arbitrary requests.

use std::net::Ipv6Addr;

use selvedge_nic::cm::{CmEvent, ConnectionManager, Offer};
use selvedge_nic::verbs::*;
use selvedge_transport::congestion::none::NoneConfig;
use selvedge_transport::recovery::go_back_n::GoBackNConfig;
use selvedge_transport::recovery::irn::{IrnConfig, Timeouts};
use selvedge_transport::{Cx, Fabric, FeedbackConfig, RecoveryConfig, RecoveryParams, Scheme};
use selvedge_units::{Bytes, Duration, Instant, Psn, QpNumber, Setting};
use selvedge_wire::verbs::Headers;

/// Addresses that remote peers may write, read and change.
const OPEN: std::ops::Range<u64> = 0x10_0000..0x10_4000;
/// Addresses that only the local application's own requests may write.
const OWN: std::ops::Range<u64> = 0x20_0000..0x20_4000;
/// A multicast group to which the datagram queue pair is attached.
const GROUP: Ipv6Addr = Ipv6Addr::new(0xff0e, 0, 0, 0, 0, 0, 0, 1);
const OPEN_KEY: u32 = 0x0101_0101;
const OWN_KEY: u32 = 0x7777_7777;
/// Prefixes of the keys of two memory windows into the open region: of type 1 and of type 2.
const WINDOWS: [u32; 2] = [0x01_0102, 0x01_0103];

/// Memory without content that panics on accesses outside registered regions.
struct Guard {
    payload: u32,
}

impl Guard {
    fn touch(&self, address: u64, length: u64) {
        let within = |range: &std::ops::Range<u64>| range.start <= address && address + length <= range.end;
        assert!(within(&OPEN) || within(&OWN), "{length} bytes at {address:#x} are not registered");
    }
}

impl Memory for Guard {
    fn place(&mut self, address: u64, from: u32, length: u32) -> Result<(), Fault> {
        assert!(from + length <= self.payload, "{from} + {length} of {}", self.payload);
        self.touch(address, length.into());
        Ok(())
    }
    fn keep(&self, into: &mut Vec<u8>) {
        into.resize(self.payload as usize, 0);
    }
    fn place_kept(&mut self, kept: &[u8], address: u64, from: u32, length: u32) -> Result<(), Fault> {
        assert!((from + length) as usize <= kept.len(), "{from} + {length} of {}", kept.len());
        self.touch(address, length.into());
        Ok(())
    }
    fn place_network_header(&mut self, address: u64, from: u32, length: u32) -> Result<(), Fault> {
        assert!(from + length <= 40);
        self.touch(address, length.into());
        Ok(())
    }
    fn fetch_add(&mut self, address: u64, _: u64) -> Result<u64, Fault> {
        assert!(OPEN.contains(&address) && address.is_multiple_of(8), "{address:#x}");
        Ok(1)
    }
    fn compare_swap(&mut self, address: u64, _: u64, _: u64) -> Result<u64, Fault> {
        self.fetch_add(address, 0)
    }
    fn word(&self) -> Option<u64> {
        (self.payload == 8).then_some(7)
    }
    fn replace(&mut self, address: u64, _: u64) -> Result<(), Fault> {
        self.fetch_add(address, 0).map(drop)
    }
    fn flush(&mut self, address: u64, length: u64, _: bool) -> Result<(), Fault> {
        self.touch(address, length);
        Ok(())
    }
    fn store(&mut self, address: u64, _: u64) -> Result<(), Fault> {
        self.touch(address, 8);
        Ok(())
    }
}

/// A sequence of bytes, read one at a time; zeros follow its end.
struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }
    fn bytes(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        taken
    }
}

struct Victim {
    rnic: Rnic,
    cm: ConnectionManager,
    now: Instant,
    cq: CqId,
    qps: [QpNumber; 4],
    route: Route,
}

fn recoveries() -> [RecoveryParams; 2] {
    let irn = IrnConfig {
        timeouts: Timeouts::On,
        rto_low: Setting::Off,
        rto_high: Setting::Value(Duration::from_us(320)),
        bdp_cap: Setting::Value(16),
        ..IrnConfig::default()
    };
    [GoBackNConfig::default().into(), irn.into()].map(|mut recovery: RecoveryConfig| {
        recovery.resolve(&Fabric::IRN_PAPER);
        recovery.params().expect("valid settings")
    })
}

impl Victim {
    fn new() -> Self {
        let mut rnic = Rnic::new(0, 16);
        let pd = rnic.alloc_pd();
        let cq = rnic.create_cq(64).expect("a valid depth");
        let own = Access { local_write: true, ..Access::default() };
        for (range, access, key) in [(OPEN, Access::ALL, OPEN_KEY), (OWN, own, OWN_KEY)] {
            let region =
                Region { pd, address: range.start, start: range.start, length: range.end - range.start, access };
            assert_eq!(rnic.reg_mr(region, key), Ok(key));
        }
        for (prefix, kind) in WINDOWS.into_iter().zip([WindowKind::Type1, WindowKind::Type2]) {
            assert_eq!(rnic.alloc_mw(pd, kind, prefix << 8), Ok((WindowId(prefix), prefix << 8)));
        }
        let address = |n| Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0x0a00, n);
        let route = Route { local: address(1), remote: address(2), traffic_class: 0, hop_limit: 64, flow_label: 0 };
        let capacities =
            Capacities { send_requests: 16, receive_requests: 16, send_pieces: 2, receive_pieces: 2, inline: 32 };
        let [standard, selective] = recoveries();
        let kinds = [
            (Service::Reliable, standard),
            (Service::Reliable, selective),
            (Service::Datagram, standard),
            (Service::Unreliable, standard),
        ];
        let qps = kinds.map(|(service, recovery)| {
            let init = QpInit {
                service,
                pd,
                send_cq: cq,
                receive_cq: cq,
                srq: None,
                capacities,
                all_signaled: true,
                recovery,
                congestion: NoneConfig {}.into(),
                feedback: FeedbackConfig::default(),
                overhead: Bytes::ZERO,
                window: 8,
                ack_every: 2,
                options: QpOptions::default(),
            };
            let qp = rnic.create_qp(init).expect("a valid configuration");
            let datagrams = service == Service::Datagram;
            let handshake = Handshake {
                access: Access::ALL,
                route,
                destination: QpNumber(77),
                mtu: 256,
                send_psn: Psn::new(0xff_fffe),
                receive_psn: Psn::new(0xff_fffe),
                reads: 2,
                timeout: 8,
                retries: 7,
                not_ready_timer: 1,
            };
            for step in handshake.steps() {
                let step = QpChange { qkey: datagrams.then_some(1), ..step };
                rnic.modify_qp(&mut Cx::at(Instant::ZERO), qp, &step).expect("the transition is permitted");
            }
            qp
        });
        rnic.attach(qps[2], GROUP).expect("a datagram queue pair");
        let mut cm = ConnectionManager::new(1, 0, 1);
        cm.listen(1).expect("the service is unused");
        Self { rnic, cm, now: Instant::ZERO, cq, qps, route }
    }

    /// Delivers a packet of the other side: its content comes from the script, its destination is one of the queue
    /// pairs.
    fn packet(&mut self, script: &mut Script<'_>) {
        let (which, length) = (script.byte(), usize::from(script.byte()) * 2);
        let mut bytes = script.bytes(length).to_vec();
        if bytes.len() >= 12 {
            bytes[1] &= 0xf0;
            bytes[5..8].copy_from_slice(&self.qps[usize::from(which % 4)].0.to_be_bytes()[1..]);
            if which & 0x80 != 0 {
                // The PSN is near the expected one.
                let psn = Psn::new(0xff_fffe).plus(u32::from(bytes[11] & 0x1f));
                bytes[9..12].copy_from_slice(&psn.get().to_be_bytes()[1..]);
            }
        }
        let Ok((headers, payload)) = Headers::parse(&bytes) else { return };
        let payload = payload.len() as u32;
        let mut route = self.route;
        let mut headers = headers;
        if which & 0x40 != 0 {
            // The datagram is for all members of the group.
            (route.local, headers.bth.destination) = (GROUP, MULTICAST);
        }
        self.rnic.handle_packet(&mut Cx::at(self.now), &mut Guard { payload }, &route, &headers, payload);
    }

    /// Posts a request of the local application.
    fn post(&mut self, script: &mut Script<'_>) {
        let (qp, kind) = (self.qps[usize::from(script.byte() % 4)], script.byte());
        let remote = Remote { address: OPEN.start + u64::from(script.byte()), key: script.byte().into() };
        let window = WINDOWS[usize::from(kind >> 7)];
        let operation = match kind % 11 {
            0 => Operation::Send(Attached::Immediate([kind; 4])),
            1 => Operation::Write { remote, immediate: None },
            2 => Operation::Write { remote, immediate: Some([kind; 4]) },
            3 => Operation::Read(remote),
            4 => Operation::FetchAdd { remote, add: 1 },
            5 => Operation::Send(Attached::Invalidate(remote.key)),
            6 => Operation::LocalInvalidate(window << 8 | remote.key),
            7 => Operation::CompareSwap { remote, compare: 1, swap: 2 },
            8 => Operation::AtomicWrite(remote),
            9 => Operation::Flush(Flush { remote, length: kind.into(), global: true, ..Flush::default() }),
            _ => Operation::Bind(Bind {
                window: WindowId(window),
                key: remote.key,
                region: OPEN_KEY,
                address: remote.address * 32 - OPEN.start * 31,
                length: u64::from(script.byte()) * 64,
                access: Access {
                    local_write: false,
                    remote_write: true,
                    remote_read: true,
                    remote_atomic: true,
                    flush_global: true,
                    ..Access::NONE
                },
                zero_based: kind & 0x40 != 0,
            }),
        };
        let piece =
            Sge { address: OWN.start + u64::from(script.byte()), length: u32::from(script.byte()) * 8, key: OWN_KEY };
        let request = SendRequest {
            id: 1,
            operation,
            data: Data::Gather(vec![piece]),
            signaled: true,
            solicited: kind & 0x80 != 0,
            fence: kind & 0x40 != 0,
            destination: Some(Destination { route: self.route, qp: QpNumber(5), qkey: 1 }),
        };
        // The queue may be full, or the queue pair may have failed.
        let _ = self.rnic.post_send(&mut Cx::at(self.now), qp, request);
        let _ = self.rnic.post_recv(qp, ReceiveRequest { id: 2, scatter: vec![piece] });
    }

    fn drain(&mut self) {
        let (mut payload, mut transmit) = (Payload::default(), Transmit::default());
        let mut left = 10_000;
        while self.rnic.poll_transmit(&mut Cx::at(self.now), &mut payload, &mut transmit) {
            let gathered: u32 = payload.spans.iter().map(|span| span.length).sum();
            assert_eq!(gathered + payload.inline.len() as u32, transmit.payload);
            for span in &payload.spans {
                Guard { payload: 0 }.touch(span.address, span.length.into());
            }
            let mut buffer = [0; Headers::LONGEST];
            transmit.headers.emit(transmit.payload as usize, &mut buffer);
            left -= 1;
            assert!(left > 0, "it sends for ever");
        }
        while self.rnic.poll_cq(self.cq).is_some() {}
        while self.rnic.poll_event().is_some() {}
        while let Some((_, mad)) = self.cm.poll_transmit() {
            mad.emit();
        }
        while let Some(event) = self.cm.poll_event() {
            if let CmEvent::Requested { id, .. } = event {
                let _ = self.cm.accept(&mut Cx::at(self.now), id, &Offer::default());
            }
        }
    }
}

/// Applies the events that `bytes` encode to an RNIC. None of them may panic, access unregistered memory, or cause an
/// endless loop.
pub(crate) fn torment_rnic(bytes: &[u8]) {
    let mut script = Script(bytes);
    let mut victim = Victim::new();
    while !script.0.is_empty() {
        match script.byte() % 8 {
            0..=3 => victim.packet(&mut script),
            4 => victim.post(&mut script),
            5 => {
                victim.now += Duration::from_us(u64::from(script.byte()) * 10);
                victim.rnic.handle_timeout(&mut Cx::at(victim.now));
                victim.cm.handle_timeout(&mut Cx::at(victim.now));
            }
            6 => {
                let mut mad = [0; 256];
                mad[..4].copy_from_slice(&[1, 7, 2, 3]);
                mad[17] = 0x10 + script.byte() % 9;
                let said = script.bytes(64);
                mad[24..24 + said.len()].copy_from_slice(said);
                victim.cm.handle(&mut Cx::at(victim.now), &victim.route, &mad);
            }
            _ => victim.drain(),
        }
        if let Some(at) = victim.rnic.poll_timeout()
            && at <= victim.now
        {
            victim.rnic.handle_timeout(&mut Cx::at(victim.now));
        }
    }
    victim.drain();
}
