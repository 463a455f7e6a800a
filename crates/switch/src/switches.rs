//! Tables of the switches of a fabric, or of one part of it, and the time at which they act.

use std::sync::Arc;

use selvedge_memory::Table;
use selvedge_units::Instant;

use crate::balancing::Balancer;
use crate::buffer::{Account, Accounting, Buffer, Queueing};
use crate::busy_ports::Scratch;
use crate::crossbar::Crossbar;
use crate::fair::FairLine;
use crate::forward::Forwarding;
use crate::netrt::Tor;
use crate::port::{Egress, Ingress, PortExtra};
use crate::queue::{Line, Queue, Store};
use crate::shares::Share;
use crate::switch::Switch;
use crate::trimming::Trimmer;

/// Parameters that hold at all switches.
#[derive(Clone, Copy)]
pub struct Params {
    /// Bytes that every frame takes on the wire in addition to its own.
    pub gap: u64,
    /// Number of traffic classes in use, 1 to 8; packets carry an index below it.
    pub classes: u32,
    /// Separation of classes into accounts.
    pub accounting: Accounting,
    /// Limits of the buffer.
    pub buffer: Buffer,
    /// Behaviour of outputs beyond serving their lines.
    pub queueing: Queueing,
    /// Whether the order matters in which packets arrive at a switch at the same time through several inputs: the first
    /// one may get what the others do not.
    pub inputs_compete: bool,
    /// Bytes below its X-OFF threshold at which an input lets its peer resume.
    pub xon_gap: u64,
    /// Bytes in an input up to which its peer may always send.
    pub xon: u64,
    /// Length of a pause, in quanta of 512 bit times.
    pub quanta: u16,
    /// Bit per class of data.
    pub data_classes: u8,
    /// Class of packets that NetRT's switches send.
    pub netrt_class: u8,
}

/// A packet's way through a switch. Ports are numbered among those of all switches.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// The switch.
    pub switch: u32,
    /// Port through which the packet came.
    pub at: u32,
    /// Port through which it leaves.
    pub out: u32,
}

/// Switches, with all their ports. Ports of hosts are among them as ends of links: [`Egress::is_host`].
///
/// Switches, ports, lines and queues are numbered; whoever builds them assigns the numbers. The tables are open to
/// schedulers that handle many events at once; every step that is not theirs is a method.
pub struct Switches {
    /// Parameters that hold at all switches.
    pub params: Params,
    /// Time of the event that is being handled.
    pub now: Instant,
    /// Time in picoseconds before which the visited switch handles events: the visit's end, or a timer.
    pub stop: u64,
    /// Number of events that have been handled.
    pub events: u64,
    /// Next hops.
    pub forwarding: Arc<Forwarding>,
    /// Entries that wait in queues.
    pub store: Store,
    /// Outgoing directions of ports.
    pub egress: Table<Egress>,
    /// Incoming directions of ports.
    pub ingress: Table<Ingress>,
    /// State of ports that few events need.
    pub extras: Table<PortExtra>,
    /// Accounts of buffer space, indexed by port and class; empty in the plain case.
    pub accounts: Table<Account>,
    /// Trimming state, indexed by port; empty where no switch trims.
    pub trimmers: Table<Trimmer>,
    /// Fair-queueing state, indexed by port and class; empty where no switch queues fairly.
    pub fair: Table<FairLine>,
    /// Turns of classes that share outputs, indexed by port; empty where all classes are strict.
    pub shares: Table<Share>,
    /// Lines, indexed by port and class.
    pub lines: Table<Line>,
    /// Queues, indexed by [`Egress::first_queue`] and what follows it.
    pub queues: Table<Queue>,
    /// Switches.
    pub switches: Table<Switch>,
    /// Crossbar state, indexed by port; empty where every input may feed all outputs at once.
    pub crossbar: Crossbar,
    /// Load-balancing state, indexed by switch; empty where hashes choose the paths.
    pub balancers: Table<Balancer>,
    /// NetRT state of ToR switches, indexed by switch; empty where NetRT is not in use.
    pub tors: Table<Option<Box<Tor>>>,
    /// Scratch buffer for the list of busy ports of the switch that is visited.
    pub scratch: Scratch,
}

impl Switches {
    /// Creates empty tables.
    pub fn new(params: Params, forwarding: Arc<Forwarding>) -> Self {
        Self {
            params,
            now: Instant::ZERO,
            stop: 0,
            events: 0,
            forwarding,
            store: Store::new(),
            egress: Table::new(),
            ingress: Table::new(),
            extras: Table::new(),
            accounts: Table::new(),
            trimmers: Table::new(),
            fair: Table::new(),
            shares: Table::new(),
            lines: Table::new(),
            queues: Table::new(),
            switches: Table::new(),
            crossbar: Crossbar::new(0, 100),
            balancers: Table::new(),
            tors: Table::new(),
            scratch: Scratch::new(),
        }
    }

    /// Returns the index of the line of packets of `class` that wait for port `at`.
    #[inline(always)]
    pub fn line_of(&self, at: u32, class: u8) -> u32 {
        at.wrapping_mul(self.params.classes).wrapping_add(u32::from(class))
    }

    /// Returns both directions of each port of `switch`.
    #[inline(always)]
    pub fn ports_of(&self, switch: &Switch) -> impl Iterator<Item = (&Egress, &Ingress)> {
        let (first, count) = (switch.facts.first_port, switch.facts.ports);
        self.egress.part(first, count).iter().zip(self.ingress.part(first, count))
    }

    /// Returns the lines of port `at`, one per class.
    pub fn lines_of(&self, at: u32) -> &[Line] {
        self.lines.part(self.line_of(at, 0), self.params.classes)
    }

    /// Makes all switches forward by these routes from now on.
    pub fn set_forwarding(&mut self, forwarding: Arc<Forwarding>) {
        self.switches.iter_mut().for_each(|switch| switch.facts.routes = forwarding.routes_of(switch.id));
        self.forwarding = forwarding;
    }

    /// Sets whether arrivals at port `at` take the slow path from now on.
    pub fn set_slow_path(&mut self, at: u32, slow: bool) {
        self.ingress[at].slow_path = slow;
        let port = &self.egress[at];
        if !port.is_host {
            let switch = &mut self.switches[port.owner];
            switch.facts.slow_path =
                self.ingress.part(switch.facts.first_port, switch.facts.ports).iter().any(|port| port.slow_path);
        }
    }
}
