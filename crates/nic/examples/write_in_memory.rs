//! Connects the queue pairs of two RDMA NICs and writes a text from the memory of one host into that of the other, with
//! packets as bytes and in virtual time.
//!
//! ```text
//! cargo run -p selvedge-nic --example write_in_memory
//! ```

use std::collections::VecDeque;
use std::error::Error;
use std::net::{Ipv4Addr, Ipv6Addr};

use selvedge_nic::verbs::{
    Access, Capacities, CqId, Data, Handshake, MemorySlice, Operation, Payload, QpInit, QpOptions, Region, Remote,
    Rnic, Route, SendRequest, Service, Sge, Status, Transmit, VerbsError,
};
use selvedge_transport::congestion::none::NoneConfig;
use selvedge_transport::recovery::irn::IrnConfig;
use selvedge_transport::{Cx, Fabric, FeedbackConfig, SenderParams};
use selvedge_units::{Bytes, Duration, Instant, Psn, QpNumber};
use selvedge_wire::verbs::Headers;

/// Address at which each host's memory begins.
const BASE: u64 = 0x7000_0000;
/// Time that a packet takes from host to host.
const DELAY: Duration = Duration::from_us(10);
const TEXT: &[u8] = b"A Write needs no receive request: the requester names the place.";

/// Host with an RDMA NIC, 4 KB of memory and one queue pair.
struct Host {
    rnic: Rnic,
    memory: Vec<u8>,
    key: u32,
    cq: CqId,
    qp: QpNumber,
    address: Ipv6Addr,
}

impl Host {
    /// Returns host `n` with its memory registered and its queue pair in state Reset.
    fn new(n: u8, engines: &SenderParams) -> Result<Self, VerbsError> {
        let mut rnic = Rnic::new(0, u32::from(n) * 100);
        let pd = rnic.alloc_pd();
        let memory = vec![b'.'; 4_096];
        let region = Region { pd, address: BASE, start: BASE, length: memory.len() as u64, access: Access::ALL };
        let key = rnic.reg_mr(region, u32::from(n))?;
        let cq = rnic.create_cq(16)?;
        let capacities =
            Capacities { send_requests: 4, receive_requests: 4, send_pieces: 1, receive_pieces: 1, inline: 0 };
        let qp = rnic.create_qp(QpInit {
            service: Service::Reliable,
            pd,
            send_cq: cq,
            receive_cq: cq,
            srq: None,
            capacities,
            all_signaled: true,
            recovery: engines.recovery,
            congestion: engines.congestion,
            feedback: FeedbackConfig::default(),
            overhead: Bytes::ZERO,
            window: 64,
            ack_every: 8,
            options: QpOptions::default(),
        })?;
        let address = Ipv4Addr::new(10, 0, 0, n).to_ipv6_mapped();
        Ok(Self { rnic, memory, key, cq, qp, address })
    }

    /// Takes the queue pair to ReadyToSend. Real hosts learn `peer`'s address and number from a connection manager.
    fn connect(&mut self, peer: QpNumber, route: Route) -> Result<(), VerbsError> {
        let handshake = Handshake {
            access: Access::ALL,
            route,
            destination: peer,
            mtu: 1_024,
            send_psn: Psn::new(1),
            receive_psn: Psn::new(1),
            reads: 4,
            timeout: 14,
            retries: 7,
            not_ready_timer: 1,
        };
        handshake.steps().iter().try_for_each(|step| self.rnic.modify_qp(&mut Cx::at(Instant::ZERO), self.qp, step))
    }

    /// Returns all packets that the NIC sends now, as bytes from the BTH on.
    fn packets(&mut self, now: Instant) -> Vec<Vec<u8>> {
        let (mut payload, mut transmit) = (Payload::default(), Transmit::default());
        let mut packets = Vec::new();
        while self.rnic.poll_transmit(&mut Cx::at(now), &mut payload, &mut transmit) {
            // The NIC says where the payload lies; its owner gathers it.
            let mut bytes = payload.inline.clone();
            for span in &payload.spans {
                bytes.extend_from_slice(&self.memory[(span.address - BASE) as usize..][..span.length as usize]);
            }
            let mut packet = vec![0; Headers::LONGEST];
            let length = transmit.headers.emit(bytes.len(), &mut packet);
            packet.truncate(length);
            packet.extend_from_slice(&bytes);
            packet.resize(length + bytes.len().next_multiple_of(4), 0);
            packets.push(packet);
        }
        packets
    }
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let fabric = Fabric { base_rtt: DELAY * 2, ..Fabric::IRN_PAPER };
    let engines = SenderParams::resolve(IrnConfig::default(), NoneConfig::default(), &fabric)?;
    let mut hosts = [Host::new(1, &engines)?, Host::new(2, &engines)?];
    let (ends, numbers) = ([hosts[0].address, hosts[1].address], [hosts[0].qp, hosts[1].qp]);
    let route_from = |at: usize| Route { local: ends[at], remote: ends[1 - at], hop_limit: 64, ..Route::NOWHERE };
    for (at, host) in hosts.iter_mut().enumerate() {
        host.connect(numbers[1 - at], route_from(at))?;
    }

    hosts[0].memory[..TEXT.len()].copy_from_slice(TEXT);
    let remote = Remote { address: BASE + 1_000, key: hosts[1].key };
    let request = SendRequest {
        id: 42,
        operation: Operation::Write { remote, immediate: None },
        data: Data::Gather(vec![Sge { address: BASE, length: TEXT.len() as u32, key: hosts[0].key }]),
        signaled: true,
        solicited: false,
        fence: false,
        destination: None,
    };
    let number = hosts[0].qp;
    hosts[0].rnic.post_send(&mut Cx::at(Instant::ZERO), number, request)?;

    let mut now = Instant::ZERO;
    let mut under_way: VecDeque<(Instant, usize, Vec<u8>)> = VecDeque::new();
    let done = loop {
        for (at, host) in hosts.iter_mut().enumerate() {
            host.rnic.handle_timeout(&mut Cx::at(now));
            under_way.extend(host.packets(now).into_iter().map(|packet| (now + DELAY, 1 - at, packet)));
        }
        if let Some(completion) = hosts[0].rnic.poll_cq(hosts[0].cq) {
            break completion;
        }
        let deadlines = hosts.iter().filter_map(|host| host.rnic.poll_timeout());
        now = deadlines.chain(under_way.front().map(|(at, ..)| *at)).min().ok_or("nothing is under way")?.max(now);
        while under_way.front().is_some_and(|(at, ..)| *at <= now) {
            let Some((_, to, packet)) = under_way.pop_front() else { break };
            let (headers, payload) = Headers::parse(&packet)?;
            println!("{now} to host {}: opcode {:#04x}, {} bytes", to + 1, headers.bth.opcode, payload.len());
            let Host { rnic, memory, .. } = &mut hosts[to];
            let mut view = MemorySlice { base: BASE, bytes: memory, payload, network_header: [0; 40] };
            let length = payload.len() as u32;
            rnic.handle_packet(&mut Cx::at(now), &mut view, &route_from(to), &headers, length);
        }
    };
    let written = &hosts[1].memory[1_000..][..TEXT.len()];
    println!("request {}: {:?}; host 2 has \"{}\"", done.id, done.status, String::from_utf8_lossy(written));
    if done.status == Status::Success && written == TEXT { Ok(()) } else { Err("the Write failed".into()) }
}
