//! Meaning of the words of a preset's name.

use std::sync::LazyLock;

use selvedge_transport::RecoveryConfig;
use selvedge_transport::endpoint::EndpointConfig;

/// First word of a name: the scheme that moves packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Scheme {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) engine: Engine,
    /// Whether switches take part in the scheme (`switch.netrt`).
    pub(super) netrt: bool,
}

/// Engine that moves packets, by its key in scenario files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Engine {
    /// Loss recovery of `[transport.recovery]`, with a congestion control of `[transport.congestion]`.
    Recovery(&'static str),
    /// TCP, `[transport.tcp]`.
    Tcp,
    /// EQDS, `[transport.eqds]`.
    Eqds,
    /// A transport of messages, by its key in `[transport]`.
    Messages(&'static str),
}

/// All schemes: those of the list, other loss recoveries, and the transports of messages.
pub(super) static SCHEMES: LazyLock<Vec<Scheme>> = LazyLock::new(|| {
    let of =
        |name, about: &'static str, engine| Scheme { name, about: about.trim_end_matches('.'), engine, netrt: false };
    let recoveries = RecoveryConfig::NAMES.iter().zip(RecoveryConfig::ABOUTS);
    let recoveries = recoveries.map(|(name, about)| of(name, about, Engine::Recovery(name)));
    let others = recoveries.filter(|scheme| LISTED.iter().all(|listed| listed.engine != scheme.engine));
    let messages = EndpointConfig::NAMES.iter().zip(EndpointConfig::ABOUTS);
    let messages = messages.map(|(name, about)| of(name, about, Engine::Messages(name)));
    LISTED.iter().copied().chain(others).chain(messages).collect()
});

const LISTED: &[Scheme] = &[
    Scheme {
        name: "irn",
        about: "selective retransmission, BDP-FC (IRN)",
        engine: Engine::Recovery("irn"),
        netrt: false,
    },
    Scheme {
        name: "roce",
        about: "go-back-N as in RoCE NICs: coalesced acknowledgements, timeouts",
        engine: GO_BACK_N,
        netrt: false,
    },
    Scheme {
        name: "netrt",
        about: "go-back-N behind top-of-rack switches that repair losses (NetRT)",
        engine: GO_BACK_N,
        netrt: true,
    },
    Scheme {
        name: "melo",
        about: "selective retransmission with bitmaps from a shared pool (MELO)",
        engine: Engine::Recovery("melo"),
        netrt: false,
    },
    Scheme { name: TCP, about: "TCP, as in iWARP NICs", engine: Engine::Tcp, netrt: false },
    Scheme {
        name: EQDS,
        about: "EQDS: credit from receivers, switches that trim, sprayed packets",
        engine: Engine::Eqds,
        netrt: false,
    },
];

const GO_BACK_N: Engine = Engine::Recovery("go-back-n");
/// Name of TCP, and its key in `[transport]`.
pub(super) const TCP: &str = "tcp";
/// Name of EQDS, and its key in `[transport]`.
pub(super) const EQDS: &str = "eqds";

/// Schemes under other names.
pub(super) const ALIASES: &[(&str, &str)] = &[("mptcp", "tcp+multipath"), ("roce-baseline", "roce+baseline")];

/// Modifier that turns on priority flow control.
pub(super) const PFC: &str = "pfc";

/// A variant of a scheme that a paper compares with it.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Variant {
    /// Modifier that selects the variant.
    pub(super) name: &'static str,
    /// Scheme that the variant belongs to.
    pub(super) of: &'static str,
    pub(super) about: &'static str,
    /// Keys, and their values as TOML.
    pub(super) sets: &'static [(&'static str, &'static str)],
    pub(super) beside: Beside,
}

/// Effect of a variant, apart from the keys that it sets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Beside {
    Nothing,
    /// Engine in the place of the scheme's.
    Engine(Engine),
    /// Congestion control that is used unless another is asked for.
    Congestion(&'static str),
    /// No need for switches that trim.
    NoTrimming,
}

/// All variants.
pub(super) const VARIANTS: &[Variant] = &[
    Variant {
        name: "baseline",
        of: "roce",
        about: "RoCE as IRN's paper compares with it: no acknowledgements or timeouts with PFC (IRN 4.1, 5.2)",
        sets: &[("transport.recovery.go-back-n.acks", "'without-pfc'")],
        beside: Beside::Nothing,
    },
    Variant {
        name: "go-back-n",
        of: "irn",
        about: "IRN with go-back-N recovery; BDP-FC and timeouts stay (IRN 4.3)",
        sets: &[
            ("transport.recovery.go-back-n.acks", "'per-packet'"),
            ("transport.recovery.go-back-n.bdp-cap", "'auto'"),
            ("transport.recovery.go-back-n.rto-low", "'auto'"),
        ],
        beside: Beside::Engine(GO_BACK_N),
    },
    Variant {
        name: "hls",
        of: "irn",
        about: "IRN as its authors' hardware code has it (IRN 6.2)",
        sets: &[("transport.recovery.irn.mode", "'hls'")],
        beside: Beside::Nothing,
    },
    Variant {
        name: "no-bdp-fc",
        of: "irn",
        about: "IRN without BDP-FC (IRN 4.3)",
        sets: &[("transport.recovery.irn.bdp-cap", "'off'")],
        beside: Beside::Nothing,
    },
    Variant {
        name: "no-sack",
        of: "irn",
        about: "selective retransmission without SACKs (IRN 4.3)",
        sets: &[("transport.recovery.irn.sack", "false")],
        beside: Beside::Nothing,
    },
    Variant {
        name: "dynamic-rto",
        of: "irn",
        about: "timeouts computed as TCP's (IRN 4.3)",
        sets: &[("transport.recovery.irn.rto", "{ dynamic = {} }")],
        beside: Beside::Nothing,
    },
    Variant {
        name: "overheads",
        of: "irn",
        about: "worst-case overheads: lost packets are fetched for 2 us, 16 B more header (IRN 6.3)",
        sets: &[("transport.recovery.irn.retransmit-delay", "'2us'"), ("transport.recovery.irn.extra-header", "'16B'")],
        beside: Beside::Nothing,
    },
    Variant {
        name: "multipath",
        of: TCP,
        about: "MPTCP: 8 subflows with linked increases (RFC 6356)",
        sets: &[("transport.tcp.subflows", "8")],
        beside: Beside::Congestion("lia"),
    },
    Variant {
        name: "rts",
        of: EQDS,
        about: "EQDS on switches that do not trim: credit is requested first (EQDS 5)",
        sets: &[("transport.eqds.burst", "false")],
        beside: Beside::NoTrimming,
    },
];

/// Load balancing other than ECMP.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Balancing {
    /// Modifier, and kind of `switch.balancing`.
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    /// The value of `switch.balancing`, as TOML.
    pub(super) value: &'static str,
}

/// All kinds of load balancing.
pub(super) const BALANCINGS: &[Balancing] = &[
    Balancing { name: "spray", about: "packets take any of the shortest ways", value: "'spray'" },
    Balancing { name: "drill", about: "packets take the shortest of a few queues (DRILL)", value: "{ drill = {} }" },
    Balancing { name: "flowlet", about: "flows may change ways where they pause (LetFlow)", value: "{ flowlet = {} }" },
];

/// Settings of congestion controls that EQIFs slow down: DCQCN's settings suit a short control loop (EQDS, appendix B:
/// R_d 4 us, R_i 750 us, R_AI 5 Mbps; the rest is the firmware's).
pub(super) const IN_TUNNELS: &[(&str, &[(&str, &str)])] = &[(
    "dcqcn",
    &[("transport.congestion.dcqcn.defaults", "'connect-x'"), ("transport.congestion.dcqcn.increase-timer", "'750us'")],
)];
