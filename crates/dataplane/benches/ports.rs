//! Rate of forwarding short frames from one port to another, by kind of port, beside a loop without a switch:
//! `cargo bench -p selvedge-dataplane --bench ports [-- SECONDS [BYTES]]`. It needs root.
//!
//! A thread in one namespace sends as fast as it can; frames are for a station that the other namespace's kernel does
//! not have, and are dropped there at once. The first number is the frames that arrive: often what the sender manages.
//! For the second, sender and forwarding thread share a core, and the latter has a low priority, so that it always
//! finds full rings. Frames per second of that thread's processor time are what a core can forward.

fn main() {
    #[cfg(target_os = "linux")]
    linux::main();
}

#[cfg(target_os = "linux")]
#[path = "../tests/support/mod.rs"]
mod support;

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;
    use std::os::fd::AsFd;
    use std::path::PathBuf;
    use std::process::Command;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use std::time::Duration;

    use nix::sched::{CpuSet, sched_setaffinity};
    use selvedge_dataplane::lab::{Rack, RackHost, RackPlan};
    use selvedge_dataplane::switch::ports::{Port, PortKind};
    use selvedge_dataplane::switch::{Bridge, Directory, Running};
    use selvedge_units::{Instant, Rate};
    use selvedge_wire::{Ecn, Envelope, EtherType, Ethernet, Ipv4, MacAddress, Udp};

    use super::support::Fifo;

    /// Frames of a batch of the loop without a switch.
    const BATCH: u32 = 64;
    /// Time for which the loop without a switch looks for frames before it sleeps.
    const LOOK: selvedge_units::Duration = selvedge_units::Duration::from_us(50);
    /// Rounds, in which cases take turns.
    const ROUNDS: usize = 3;

    /// Forwarding threads.
    #[derive(Clone, Copy)]
    enum Forwarder {
        Switch,
        Plain,
    }

    pub(crate) fn main() {
        let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
        // As a test, which `cargo test --benches` runs, it is short.
        let is_test = !std::env::args().any(|word| word == "--bench");
        let (seconds, bytes) = (numbers.first().copied().unwrap_or(2), numbers.get(1).copied().unwrap_or(60));
        let time = if is_test { Duration::from_millis(50) } else { Duration::from_secs(seconds) };
        println!("{:<22} {:>12} {:>22}", format!("{bytes} bytes"), "Mpps", "Mpps of a core");
        let cases = [
            ("plain AF_XDP", Forwarder::Plain, PortKind::Xdp),
            ("switch, AF_XDP", Forwarder::Switch, PortKind::Xdp),
            ("plain AF_PACKET", Forwarder::Plain, PortKind::Packet),
            ("switch, AF_PACKET", Forwarder::Switch, PortKind::Packet),
            ("plain TAP", Forwarder::Plain, PortKind::Tap),
            ("switch, TAP", Forwarder::Switch, PortKind::Tap),
        ];
        println!("{:<22} {:>12} {:>22.3}", "bridge and engine", "", without_ports(time, bytes as usize));
        for _ in 0..if is_test { 1 } else { ROUNDS } {
            for (name, forwarder, kind) in cases {
                let [free, starved] =
                    [false, true].map(|starves| measure(forwarder, kind, time, bytes as usize, starves));
                match (free, starved) {
                    (Ok([rate, _]), Ok([_, of_core])) => println!("{name:<22} {rate:>12.3} {of_core:>22.3}"),
                    (Err(error), _) | (_, Err(error)) => eprintln!("skipped: {name}: {error}"),
                }
            }
        }
    }

    /// Returns the frames that arrive, in millions a second, and those for each second of the forwarding thread.
    fn measure(
        forwarder: Forwarder,
        kind: PortKind,
        time: Duration,
        bytes: usize,
        starves: bool,
    ) -> std::io::Result<[f64; 2]> {
        // Threads are started on the processors of this one.
        let mut processors = CpuSet::new();
        for processor in 0..if starves { 1 } else { thread::available_parallelism()?.get().max(2) } {
            processors.set(processor)?;
        }
        sched_setaffinity(nix::unistd::Pid::from_raw(0), &processors)?;
        let host = |name: &str| RackHost { name: name.to_owned(), rate: None };
        let name = format!("svb{}", std::process::id());
        let plan = RackPlan { name, hosts: vec![host("a"), host("b")], mtu: 1_500, kind: Some(kind) };
        let racked = Rack::open(&plan, &mut || false)?;
        let stranger = MacAddress::local(99);
        let mut directory = Directory::new(2);
        directory.add(0, plan.station(0), plan.addresses(0));
        directory.add(1, stranger, []);
        let is_ended = Arc::new(AtomicBool::new(false));
        let is_running = {
            let is_ended = Arc::clone(&is_ended);
            move || !is_ended.load(Ordering::Relaxed)
        };
        let sender = {
            let (space, frame, is_running) =
                (plan.namespace(0), frame(plan.station(0), stranger, bytes), is_running.clone());
            let mut port = in_namespace(&space, || Port::open(PortKind::Packet, "eth0"))?;
            thread::spawn(move || {
                while is_running() {
                    port.send(&frame);
                }
            })
        };
        let (running, plain) = match forwarder {
            Forwarder::Switch => {
                let bridge = Bridge::new(Fifo::new(2, Rate::MAX, 1 << 20), directory);
                (Some(Running::start(bridge, racked.ports, None)?), None)
            }
            Forwarder::Plain => {
                let name = "selvedge-switch".to_owned();
                let thread = thread::Builder::new().name(name).spawn(move || forward(racked.ports, is_running))?;
                (None, Some(thread))
            }
        };
        if starves {
            for task in forwarding() {
                let number = task.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                let _ = Command::new("renice").args(["-n", "15", "-p", number]).output();
            }
        }
        wait(time / 4);
        let (before, busy) = (arrived(&plan), busy());
        wait(time);
        let frames = (arrived(&plan) - before) as f64;
        let busy = (self::busy() - busy) as f64;
        is_ended.store(true, Ordering::Relaxed);
        let _ = sender.join();
        drop(running);
        if let Some(plain) = plain {
            let _ = plain.join();
        }
        Ok([frames / time.as_micros() as f64, 1e3 * frames / busy])
    }

    /// Returns the rate of bridge and engine alone, in millions a second of processor time.
    fn without_ports(time: Duration, bytes: usize) -> f64 {
        const TURN: u64 = 64;
        let mut directory = Directory::new(2);
        let stations = [1, 2].map(MacAddress::local);
        (0..2).for_each(|port| directory.add(port, stations[port], []));
        let mut bridge = Bridge::new(Fifo::new(2, Rate::MAX, 1 << 20), directory);
        let frame = frame(stations[0], stations[1], bytes);
        let clock = selvedge_dataplane::Clock::start();
        let mut frames = 0;
        while clock.now().since(Instant::ZERO).as_ps() / 1_000 < time.as_nanos() as u64 {
            let now = clock.now();
            (0..TURN).for_each(|_| bridge.handle_frame(now, 0, &frame));
            while let Some(leaving) = bridge.poll_transmit(now + selvedge_units::Duration::from_us(10)) {
                std::hint::black_box(leaving);
                frames += 1;
            }
        }
        frames as f64 / clock.now().since(Instant::ZERO).as_ps() as f64 * 1e6
    }

    /// Forwards from the first port to the second, and nothing else. Looks around as long as the switch before it
    /// sleeps.
    fn forward(mut ports: Vec<Port>, is_running: impl Fn() -> bool) {
        let [from, to] = &mut ports[..] else { return };
        let clock = selvedge_dataplane::Clock::start();
        let mut last = clock.now();
        while is_running() {
            let count = from.receive(BATCH, |frame| _ = to.send(frame)).expect("the interface is there");
            if count > 0 {
                let _ = to.flush();
                last = clock.now();
            } else if from.kind() == PortKind::Tap || clock.now().since(last) > LOOK {
                let file = nix::poll::PollFd::new(from.as_fd(), nix::poll::PollFlags::POLLIN);
                let _ = nix::poll::poll(&mut [file], 10u8);
                from.note_arrival();
            }
        }
    }

    /// Returns a frame with a UDP datagram.
    fn frame(source: MacAddress, destination: MacAddress, bytes: usize) -> Vec<u8> {
        let payload = vec![0; bytes - Ethernet::LENGTH - Ipv4::LENGTH - Udp::LENGTH];
        let envelope = Envelope {
            source: [10, 77, 0, 1].into(),
            destination: [10, 77, 0, 2].into(),
            dscp: 0,
            ecn: Ecn::Capable,
            identification: 0,
            ttl: 64,
        };
        let length = (Udp::LENGTH + payload.len()) as u16;
        let udp = Udp { source: 1_000, destination: 2_000, length, checksum: 0 };
        let ethernet = Ethernet { destination, source, kind: EtherType::IPV4 };
        let ip = envelope.around(Ipv4::UDP, length.into());
        [&ethernet.emit()[..], &ip.emit(), &udp.emit(), &payload].concat()
    }

    /// Calls a function in a thread that has entered a namespace.
    fn in_namespace<T: Send>(name: &str, visit: impl FnOnce() -> std::io::Result<T> + Send) -> std::io::Result<T> {
        let file = fs::File::open(PathBuf::from("/run/netns").join(name))?;
        let enter = || {
            nix::sched::setns(&file, nix::sched::CloneFlags::CLONE_NEWNET)?;
            visit()
        };
        thread::scope(|scope| scope.spawn(enter).join()).expect("no panic in a namespace")
    }

    /// Returns the number of frames that the second host's interface has received.
    fn arrived(plan: &RackPlan) -> u64 {
        let words = ["netns", "exec", &plan.namespace(1), "cat", "/proc/net/dev"];
        let output = Command::new("ip").args(words).output().expect("`ip` is there");
        let text = String::from_utf8_lossy(&output.stdout);
        let line = text.lines().find_map(|line| line.trim().strip_prefix("eth0:")).expect("a line");
        line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number")
    }

    /// Returns the nanoseconds for which the forwarding thread has run.
    fn busy() -> u64 {
        let times = forwarding().into_iter().filter_map(|task| fs::read_to_string(task.join("schedstat")).ok());
        times.filter_map(|text| text.split(' ').next()?.parse::<u64>().ok()).sum()
    }

    /// Returns the folder of the forwarding thread.
    fn forwarding() -> Vec<PathBuf> {
        let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten().map(|task| task.path());
        let is_forwarding =
            |task: &PathBuf| fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == "selvedge-switch");
        tasks.filter(is_forwarding).collect()
    }

    #[expect(clippy::disallowed_methods, reason = "a benchmark takes its time")]
    fn wait(time: Duration) {
        thread::sleep(time);
    }
}
