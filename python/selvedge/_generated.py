"""Tables of scenarios as classes. Written by python/generate.py from the schema; do not edit."""
# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from ._part import Part

__all__ = ["Aimd", "AimdWindow", "AllToAll", "Bbr", "Beside", "BitErrors", "Bursty", "Case", "Chain", "ClosedLoop", "Cnp", "Collective", "CongestionDctcp", "Cubic", "Dcqcn", "Dctcp", "Drill", "Dumbbell", "DynamicRto", "Ecn", "Eqds", "EqdsLoss", "Eqif", "Explicit", "ExplicitLink", "FairQueued", "FatTree", "Fixed", "FlowFile", "FlowQueues", "Flowlet", "GilbertElliott", "GoBackN", "GoalFile", "Homa", "Hpcc", "Incast", "InputQueued", "Irn", "LeafSpine", "Life", "Link", "LinkFailure", "LinkHeadroom", "Loss", "Melo", "MixtureOfExperts", "Ndp", "NetRt", "Nic", "Pause", "Permutation", "Pfc", "Pipeline", "Poisson", "RandomLoss", "RdmaEqif", "Red", "Share", "SharedBuffer", "Stop", "Sweep", "Swift", "Switch", "Tcp", "TcpEqif", "Team", "Timely", "TopologyFile", "Trimming", "Vegas", "Verbs", "Window"]

class Aimd(Part):
    """Additive increase, multiplicative decrease, like in TCP (RFC 5681).

    Args:
        decrease_factor: The part of the window that remains after a loss, from 0 to below 1. Default: 0.5.
        on_timeout: The reaction of the window to a timeout. Default: decrease.
        window: Settings of the window.
    """

    _path = 'transport.congestion.aimd'
    _tag = 'aimd'
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'decrease_factor': ('decrease-factor', ''),
        'on_timeout': ('on-timeout', ''),
        'window': ('window', ''),
    }

    def __init__(
        self,
        *,
        decrease_factor: float | None = None,
        on_timeout: Literal["decrease"] | Literal["restart"] | None = None,
        window: "AimdWindow" | Mapping[str, Any] | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            decrease_factor=decrease_factor,
            on_timeout=on_timeout,
            window=window,
        )



class AimdWindow(Part):
    """Settings of a window that grows by a step per round trip.

    Args:
        initial: Bytes on the wire that a flow may have in flight at first. Default: "auto", the amount that fills
            its empty path: the line rate, or a slower receiver's, times the round-trip time. Flows start at line
            rate.
        min: The smallest window. Default: "auto", one full frame.
        slow_start: Whether the window doubles per round trip until it is cut for the first time. Default: false,
            because flows start at line rate.
        step: The growth of the window per round trip. Default: "auto", one full frame (RFC 5681, section 3.1).
    """

    _path = 'transport.congestion.aimd.window'
    _tag = ''
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'initial': ('initial', ''),
        'min': ('min', ''),
        'slow_start': ('slow-start', ''),
        'step': ('step', ''),
    }

    def __init__(
        self,
        *,
        initial: str | None = None,
        min: str | None = None,
        slow_start: bool | None = None,
        step: str | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            initial=initial,
            min=min,
            slow_start=slow_start,
            step=step,
        )



class AllToAll(Part):
    """Traffic in which each host sends one flow to every other: first to the next host, then to the one after that, and round again, so that receivers are used evenly.

    Args:
        hosts: Hosts that take part. Absent: all hosts.
        jitter: Largest random delay of each host's beginning, so that hosts do not act in step.
        outstanding: Number of flows that each host keeps outstanding, at least 1. Absent: all at once.
        size: Size of each flow; above zero.
        start: Time at which the first flows begin.
    """

    _path = 'workload.all-to-all'
    _tag = 'all-to-all'
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'hosts': ('hosts', ''),
        'jitter': ('jitter', ''),
        'outstanding': ('outstanding', ''),
        'size': ('size', ''),
        'start': ('start', ''),
    }

    def __init__(
        self,
        size: str,
        *,
        hosts: Sequence[int | str] | str | None = None,
        jitter: str | None = None,
        outstanding: int | None = None,
        start: str | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            size=size,
            hosts=hosts,
            jitter=jitter,
            outstanding=outstanding,
            start=start,
        )



class Bbr(Part):
    """BBR's constants.

    Args:
        min_rtt_window: Time for which a minimum of the round-trip time holds; then the path is emptied to measure
            it anew. Default: 10s (section 4.1.2.3).
        probe_rtt: Time for which the path stays empty then, at least. Default: 200ms (section 4.3.5).
    """

    _path = 'beside.tcp.congestion.bbr'
    _tag = 'bbr'
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'min_rtt_window': ('min-rtt-window', ''),
        'probe_rtt': ('probe-rtt', ''),
    }

    def __init__(
        self,
        *,
        min_rtt_window: str | None = None,
        probe_rtt: str | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            min_rtt_window=min_rtt_window,
            probe_rtt=probe_rtt,
        )



class Beside(Part):
    """Workloads whose flows use TCP beside the configured transport, RDMA or another TCP, so that both share the network.

    Args:
        class_: Priority of these workloads' packets, 0 to 7. Absent: the priority of all other data.
        tcp: TCP of these workloads, also where the transport is TCP itself, with settings of its own.
        workloads: Workloads that use TCP, by their keys in `[workload]`: "incast", or "poisson\\[1\\]" where
            there are several.
    """

    _path = 'beside'
    _tag = ''
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'class_': ('class', ''),
        'tcp': ('tcp', ''),
        'workloads': ('workloads', ''),
    }

    def __init__(
        self,
        workloads: Sequence[str],
        *,
        class_: int | None = None,
        tcp: "Tcp" | Mapping[str, Any] | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            workloads=workloads,
            class_=class_,
            tcp=tcp,
        )



class BitErrors(Part):
    """Parameters of [`LossModel::Corrupt`](super::LossModel::Corrupt): each bit of a frame fails independently, so that longer packets are lost more often.

    Args:
        bit_error_rate: Probability that a bit is received wrong; Ethernet allows at most 1e-12 without forward
            error correction (IEEE 802.3).
    """

    _path = 'loss.model.corrupt'
    _tag = 'corrupt'
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'bit_error_rate': ('bit-error-rate', ''),
    }

    def __init__(
        self,
        bit_error_rate: float | str,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            bit_error_rate=bit_error_rate,
        )



class Bursty(Part):
    """Parameters of [`LossModel::Bursty`]: a Gilbert-Elliott channel that loses every packet in its bad state and none in its good one.

    Args:
        mean_burst: Mean number of packets that are lost in a row, at least 1.
        rate: Long-run probability that a packet is lost; at most `mean-burst / (mean-burst + 1)`.
    """

    _path = 'loss.model.bursty'
    _tag = 'bursty'
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'mean_burst': ('mean-burst', ''),
        'rate': ('rate', ''),
    }

    def __init__(
        self,
        mean_burst: float,
        rate: float | str,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            mean_burst=mean_burst,
            rate=rate,
        )



class Case(Part):
    """A condition under which all series are compared.

    Args:
        name: Name in tables and claims: "30 % load".
        set: Values by their dotted keys, put in place after those of the series. A value that fits some series
            only (a setting of one loss recovery) leaves the others unchanged.
    """

    _path = 'case'
    _tag = ''
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'name': ('name', ''),
        'set': ('set', ''),
    }

    def __init__(
        self,
        name: str,
        *,
        set: Mapping[str, Any] | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            name=name,
            set=set,
        )



class Chain(Part):
    """Row of switches, with hosts on the first and the last, or on each ("parking lot").

    Hosts are numbered along the row: `h0`, `h1` and so on; so are switches: `s0`, `s1`. Each switch is a unit.

    Args:
        host_link: Links from hosts to switches.
        hosts_per_end: Hosts on the first and on the last switch (on the only one: twice as many), at least 1.
        hosts_per_inner: Hosts on each inner switch.
        switch_link: Links between switches.
        switches: Switches in the row, at least 1.
    """

    _path = 'topology.chain'
    _tag = 'chain'
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'host_link': ('host-link', ''),
        'hosts_per_end': ('hosts-per-end', ''),
        'hosts_per_inner': ('hosts-per-inner', ''),
        'switch_link': ('switch-link', ''),
        'switches': ('switches', ''),
    }

    def __init__(
        self,
        switches: int,
        host_link: "Link" | Mapping[str, Any],
        switch_link: "Link" | Mapping[str, Any],
        *,
        hosts_per_end: int | None = None,
        hosts_per_inner: int | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            switches=switches,
            host_link=host_link,
            switch_link=switch_link,
            hosts_per_end=hosts_per_end,
            hosts_per_inner=hosts_per_inner,
        )



class ClosedLoop(Part):
    """Closed loop in which each client keeps a number of flows to random servers outstanding: when one is acknowledged, the next begins.

    Args:
        clients: Hosts that send. Absent: all hosts.
        flows_per_client: Number of flows that each client starts, at least 1. Absent: without limit.
        jitter: Largest random delay of each client's beginning, so that clients do not act in step.
        outstanding: Number of flows that each client keeps outstanding, at least 1.
        servers: Hosts that receive. Absent: all hosts.
        sizes: Sizes of flows.
        start: Time at which the first flows begin.
        think: Time that a client waits from the end of a flow to the beginning of the next.
    """

    _path = 'workload.closed-loop'
    _tag = 'closed-loop'
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'clients': ('clients', ''),
        'flows_per_client': ('flows-per-client', ''),
        'jitter': ('jitter', ''),
        'outstanding': ('outstanding', ''),
        'servers': ('servers', ''),
        'sizes': ('sizes', 'sizes'),
        'start': ('start', ''),
        'think': ('think', ''),
    }

    def __init__(
        self,
        sizes: Mapping[str, Any] | Sequence[str] | str,
        *,
        clients: Sequence[int | str] | str | None = None,
        flows_per_client: int | None = None,
        jitter: str | None = None,
        outstanding: int | None = None,
        servers: Sequence[int | str] | str | None = None,
        start: str | None = None,
        think: str | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            sizes=sizes,
            clients=clients,
            flows_per_client=flows_per_client,
            jitter=jitter,
            outstanding=outstanding,
            servers=servers,
            start=start,
            think=think,
        )



class Cnp(Part):
    """CNPs from the EQIF to its engine.

    Args:
        interval: Least time between two CNPs to one queue pair. Default: 4us, as often as the rate decreases
            (appendix B, R_d).
        k_high: Bytes above which each packet triggers a CNP, not below `k-low`. Default: 584KB (appendix B).
        k_low: Bytes for one destination up to which there is no CNP. Default: 72KB (appendix B).
        p_max: Probability of a CNP just below `k-high`; rises linearly from zero at `k-low`. Default: 1; the
            paper does not say.
    """

    _path = 'transport.eqds.eqif.rdma.back-pressure.cnp'
    _tag = 'cnp'
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'interval': ('interval', ''),
        'k_high': ('k-high', ''),
        'k_low': ('k-low', ''),
        'p_max': ('p-max', ''),
    }

    def __init__(
        self,
        *,
        interval: str | None = None,
        k_high: str | None = None,
        k_low: str | None = None,
        p_max: float | str | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            interval=interval,
            k_high=k_high,
            k_low=k_low,
            p_max=p_max,
        )



class Collective(Part):
    """Collective operation, once or repeatedly. A repetition of a group is a job: its completion time lasts from its first flow's start to its last one's end.

    Args:
        compute: Time that each host computes before each repetition.
        operation: Operation and its algorithm.
        repeat: Number of repetitions, at least 1. A host begins the next as soon as it is done itself.
        size: Buffer of each host: the data that is reduced, gathered as a whole, or sent to all others together.
            At least a byte per host of a group.
        start: Time at which the first repetition begins.
        team: Hosts that take part.
    """

    _path = 'workload.collective'
    _tag = 'collective'
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'compute': ('compute', ''),
        'operation': ('operation', 'kind'),
        'repeat': ('repeat', ''),
        'size': ('size', ''),
        'start': ('start', ''),
        'team': ('team', ''),
    }

    def __init__(
        self,
        operation: Literal["all-gather"] | Literal["halving-doubling-all-reduce"] | Literal["reduce-scatter"] | Literal["ring-all-reduce"] | Mapping[str, Any],
        size: str,
        *,
        compute: str | None = None,
        repeat: int | None = None,
        start: str | None = None,
        team: "Team" | Mapping[str, Any] | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            operation=operation,
            size=size,
            compute=compute,
            repeat=repeat,
            start=start,
            team=team,
        )



class CongestionDctcp(Part):
    """DCTCP's constants.

    Args:
        gain: Weight g of the newest window's fraction of marks, above 0 up to 1. Default: 1/16 (section 4.2).
        initial_alpha: Initial alpha, 0 to 1. Default: 1 (section 3.3).
    """

    _path = 'beside.tcp.congestion.dctcp'
    _tag = 'dctcp'
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'gain': ('gain', ''),
        'initial_alpha': ('initial-alpha', ''),
    }

    def __init__(
        self,
        *,
        gain: float | None = None,
        initial_alpha: float | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            gain=gain,
            initial_alpha=initial_alpha,
        )



class Cubic(Part):
    """CUBIC's constants.

    Args:
        beta: Factor beta of the window after a loss. Default: 0.7 (section 4.6).
        c: Growth speed C of the window, in segments per cubic second. Default: 0.4 (section 5.1).
        fast_convergence: Whether a flow whose window shrinks reduces it further in favour of new flows (section
            4.7). Default: true.
        raise_alpha: Whether a flow whose Reno-like window is back where the last loss was grows as fast as Reno
            (alpha = 1; section 4.3), which RFC 8312 and Linux do not have. Default: true.
    """

    _path = 'beside.tcp.congestion.cubic'
    _tag = 'cubic'
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'beta': ('beta', ''),
        'c': ('c', ''),
        'fast_convergence': ('fast-convergence', ''),
        'raise_alpha': ('raise-alpha', ''),
    }

    def __init__(
        self,
        *,
        beta: float | None = None,
        c: float | None = None,
        fast_convergence: bool | None = None,
        raise_alpha: bool | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            beta=beta,
            c=c,
            fast_convergence=fast_convergence,
            raise_alpha=raise_alpha,
        )



class Dcqcn(Part):
    """DCQCN. Settings at "auto" have the values of `defaults`.

    Args:
        additive_increase: R_AI, the step of additive increase. "auto": 40Mbps (paper), 5Mbps (ConnectX,
            RPG_AI_RATE).
        alpha_interval: The time without a CNP after which alpha decreases. "auto": 55us (paper), 1us (ConnectX,
            DCE_TCP_RTT).
        alpha_update: The events that update alpha. "auto": each CNP (paper), once per interval (ConnectX).
        byte_counter: Bytes on the wire between two increases. "auto": 10MB (paper), 32767B (ConnectX,
            RPG_BYTE_RESET). "off": the timer alone.
        clamp_target: Decreases that make the current rate the target. "auto": always (paper), after-increase
            (ConnectX).
        cnp_interval: The least time between two CNPs that a receiver sends for one queue pair. "auto": 50us
            (paper), 4us (ConnectX, MIN_TIME_BETWEEN_CNPS).
        decrease_interval: The least time between two decreases. "auto": off, every CNP decreases (paper), 4us
            (ConnectX, RATE_REDUCE_MONITOR_PERIOD).
        defaults: The source of the values at "auto". Default: paper.
        fast_recovery_steps: F: the number of increases of fast recovery. "auto": 5 (paper), 1 (ConnectX,
            RPG_THRESHOLD).
        g: g: the weight of alpha's updates, above 0, at most 1. "auto": 1/256 (paper), 5/1024 (ConnectX,
            DCE_TCP_G).
        hyper_increase: R_HAI, the step of hyper increase. "auto": 200Mbps (the paper does not say; its authors'
            simulator), 50Mbps (ConnectX, RPG_HAI_RATE).
        increase_timer: Time between two increases. "auto": 55us (paper), 300us (ConnectX, RPG_TIME_RESET).
        initial_alpha: Alpha at the first CNP, 0 to 1. "auto": 1 (paper), 1023/1024 (ConnectX,
            INITIAL_ALPHA_VALUE).
        line_rate: The rate at which flows start and which they never exceed; where it is the link's own, the link
            paces. Default: "auto", the hosts' line rate.
        loss_factor: The part of the rate that remains when a loss is found, above 0, at most 1: go-back-N
            "explicitly backing off on losses" (IRN, section 4.3, which does not say how). Default: "auto", which
            is off: DCQCN has no such rule.
        min_decrease_factor: The least part of the rate that one decrease keeps, 0 to 1. "auto": 0.5 (paper: alpha
            is at most 1; ConnectX, RPG_MIN_DEC_FAC).
        min_rate: The lowest rate. "auto": 100Mbps (the paper does not say; its authors' simulator), 1Mbps
            (ConnectX, RPG_MIN_RATE).
        rate_on_first_cnp: The rate after the first CNP. Default: "auto", which is off: a usual decrease (paper;
            ConnectX, RATE_TO_SET_ON_FIRST_CNP).
    """

    _path = 'transport.congestion.dcqcn'
    _tag = 'dcqcn'
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'additive_increase': ('additive-increase', ''),
        'alpha_interval': ('alpha-interval', ''),
        'alpha_update': ('alpha-update', ''),
        'byte_counter': ('byte-counter', ''),
        'clamp_target': ('clamp-target', ''),
        'cnp_interval': ('cnp-interval', ''),
        'decrease_interval': ('decrease-interval', ''),
        'defaults': ('defaults', ''),
        'fast_recovery_steps': ('fast-recovery-steps', ''),
        'g': ('g', ''),
        'hyper_increase': ('hyper-increase', ''),
        'increase_timer': ('increase-timer', ''),
        'initial_alpha': ('initial-alpha', ''),
        'line_rate': ('line-rate', ''),
        'loss_factor': ('loss-factor', ''),
        'min_decrease_factor': ('min-decrease-factor', ''),
        'min_rate': ('min-rate', ''),
        'rate_on_first_cnp': ('rate-on-first-cnp', ''),
    }

    def __init__(
        self,
        *,
        additive_increase: str | None = None,
        alpha_interval: str | None = None,
        alpha_update: Literal["auto"] | Literal["per-cnp"] | Literal["per-interval"] | None = None,
        byte_counter: str | None = None,
        clamp_target: Literal["after-increase"] | Literal["always"] | Literal["auto"] | None = None,
        cnp_interval: str | None = None,
        decrease_interval: str | None = None,
        defaults: Literal["connect-x"] | Literal["paper"] | Literal["paper-on-connect-x"] | None = None,
        fast_recovery_steps: Literal["auto", "off"] | int | None = None,
        g: Literal["auto", "off"] | float | None = None,
        hyper_increase: str | None = None,
        increase_timer: str | None = None,
        initial_alpha: Literal["auto", "off"] | float | None = None,
        line_rate: str | None = None,
        loss_factor: Literal["auto", "off"] | float | None = None,
        min_decrease_factor: Literal["auto", "off"] | float | None = None,
        min_rate: str | None = None,
        rate_on_first_cnp: str | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            additive_increase=additive_increase,
            alpha_interval=alpha_interval,
            alpha_update=alpha_update,
            byte_counter=byte_counter,
            clamp_target=clamp_target,
            cnp_interval=cnp_interval,
            decrease_interval=decrease_interval,
            defaults=defaults,
            fast_recovery_steps=fast_recovery_steps,
            g=g,
            hyper_increase=hyper_increase,
            increase_timer=increase_timer,
            initial_alpha=initial_alpha,
            line_rate=line_rate,
            loss_factor=loss_factor,
            min_decrease_factor=min_decrease_factor,
            min_rate=min_rate,
            rate_on_first_cnp=rate_on_first_cnp,
        )



class Dctcp(Part):
    """DCTCP, on a transport that acknowledges each packet.

    Args:
        decrease_factor: The part of the window that remains after a loss, from 0 to below 1. Default: 0.5.
        g: g: the weight of the newest window's fraction of marks, above 0, at most 1. Default: 1/16 (section 4).
        initial_alpha: Alpha before the first observation, 0 to 1. Default: 1 (RFC 8257, section 3.3).
        k: K: packets that find more than this before them are marked, on links of `line-rate`; the value of
            "auto" for `switch.ecn`. Default: "auto", four fifths of that rate times the round-trip time of the
            empty longest path, and at least 20 full frames, like in the paper's experiments (65 packets at 10
            Gb/s with 100 us, 20 at 1 Gb/s). Where buffers are small, half of the buffer of an input, but never
            less than a seventh of rate times round-trip time (equation 13): that keeps the link busy, but unequal
            flows need not converge.
        line_rate: The rate that `k` is for. Default: "auto", the hosts' line rate.
        window: Settings of the window.
    """

    _path = 'transport.congestion.dctcp'
    _tag = 'dctcp'
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'decrease_factor': ('decrease-factor', ''),
        'g': ('g', ''),
        'initial_alpha': ('initial-alpha', ''),
        'k': ('k', ''),
        'line_rate': ('line-rate', ''),
        'window': ('window', ''),
    }

    def __init__(
        self,
        *,
        decrease_factor: float | None = None,
        g: float | None = None,
        initial_alpha: float | None = None,
        k: str | None = None,
        line_rate: str | None = None,
        window: "AimdWindow" | Mapping[str, Any] | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            decrease_factor=decrease_factor,
            g=g,
            initial_alpha=initial_alpha,
            k=k,
            line_rate=line_rate,
            window=window,
        )



class Drill(Part):
    """Parameters of [`BalancingConfig::Drill`]: DRILL(choices, memory).

    Args:
        choices: Queues that are drawn at random for each packet, 1 to 8 (DRILL's choice: 2). Each is drawn from
            all, so one may be drawn twice; ConWeave's ns-3 code draws different ones.
        memory: Shortest queues of the last time that are remembered for each leaf switch, 0 to 8 (DRILL's choice:
            1).
    """

    _path = 'switch.balancing.drill'
    _tag = 'drill'
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'choices': ('choices', ''),
        'memory': ('memory', ''),
    }

    def __init__(
        self,
        *,
        choices: int | None = None,
        memory: int | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            choices=choices,
            memory=memory,
        )



class Dumbbell(Part):
    """Two switches, `left` and `right`, with hosts on both sides of one bottleneck: `h0`, `h1` and so on. Each side is a unit.

    Args:
        bottleneck: The link between the two switches.
        host_link: Links from hosts to switches.
        left: Hosts on the left, numbered first; at least 1.
        right: Hosts on the right; at least 1.
    """

    _path = 'topology.dumbbell'
    _tag = 'dumbbell'
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'bottleneck': ('bottleneck', ''),
        'host_link': ('host-link', ''),
        'left': ('left', ''),
        'right': ('right', ''),
    }

    def __init__(
        self,
        left: int,
        right: int,
        host_link: "Link" | Mapping[str, Any],
        bottleneck: "Link" | Mapping[str, Any],
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            left=left,
            right=right,
            host_link=host_link,
            bottleneck=bottleneck,
        )



class DynamicRto(Part):
    """Parameters of [`Rto::Dynamic`]. The paper gives none.

    Args:
        initial: The timeout of a flow that has no sample yet. Default: "auto", which is RTO_high, but no more
            than `max`.
        max: The largest timeout, after back-off. Default: 10ms.
        min: The least timeout. Default: 100us, RTO_low's.
    """

    _path = 'transport.recovery.irn.rto.dynamic'
    _tag = 'dynamic'
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'initial': ('initial', ''),
        'max': ('max', ''),
        'min': ('min', ''),
    }

    def __init__(
        self,
        *,
        initial: str | None = None,
        max: str | None = None,
        min: str | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            initial=initial,
            max=max,
            min=min,
        )



class Ecn(Part):
    """RED marking on the bytes that wait for an output (DCQCN section 3.1).

    Args:
        at_rate: Rate of the links that `k-min` and `k-max` are meant for; others scale them in proportion.
            "auto": the hosts' line rate; "off": equal on all links.
        enabled: Whether switches mark packets of ECN-capable transports. "auto": where congestion control reacts
            to marks.
        k_max: Queue length above which every packet is marked. "auto": like `k-min` (DCQCN: 200 KB at 40 Gb/s).
        k_min: Queue length up to which no packet is marked. "auto": that of the congestion control's paper, for
            the hosts' line rate; DCQCN's where the paper gives none (5 KB at 40 Gb/s).
        p_max: Probability of a mark just below `k-max`; rises linearly from zero at `k-min`. "auto": like `k-min`
            (DCQCN: 0.01).
    """

    _path = 'switch.ecn'
    _tag = ''
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'at_rate': ('at-rate', ''),
        'enabled': ('enabled', ''),
        'k_max': ('k-max', ''),
        'k_min': ('k-min', ''),
        'p_max': ('p-max', ''),
    }

    def __init__(
        self,
        *,
        at_rate: str | None = None,
        enabled: Literal["auto"] | bool | None = None,
        k_max: str | None = None,
        k_min: str | None = None,
        p_max: float | str | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            at_rate=at_rate,
            enabled=enabled,
            k_max=k_max,
            k_min=k_min,
            p_max=p_max,
        )



class Eqds(Part):
    """EQDS: an edge-queued datagram service (Olteanu et al., NSDI'22).

    Args:
        ack_after: Bytes that may arrive before they are acknowledged; senders ask if nothing follows or can
            follow (`window`, `reorder`); at most 1GiB. Default: 0B, each packet (section 5).
        bounds: Origin of the bounds of tunnels. Measured: a tunnel's credit is what its round trips need at
            `pull-rate`, its packets in flight twice that (both within `window` and `reorder`), its reorder queue
            waits for as long as holes took to fill (within `reorder-timeout`), and busy times are computed from
            the rate of the pulls that left. Default: fixed.
        burst: Whether a new tunnel sends its first window unsolicited, as NDP does, or requests credit first
            (section 5). Default: "auto", true where switches trim packets.
        busy_ceiling: Longest busy time that a sender believes. Default: "off", any.
        control_frame: Frame of a control packet, 64B to 1KB. Default: "auto": as `header`, without the message's;
            at least 64B.
        eqif: Stacks whose packets tunnels carry. Default: none.
        first_window: Bytes that a new or resumed tunnel sends unsolicited if it bursts; at most `window` counts.
            A small one lets short messages go at once where switches do not trim. Default: "auto", `window`.
        header: Bytes around a packet's payload, Ethernet to FCS. Default: "auto": Ethernet 14, IPv4 20, UDP 8,
            the tunnel header, a native message's header 8, FCS 4. At most 1KB.
        headers: Width of the tunnel header's fields. Default: wide, 16 bytes.
        life: End of idle tunnels and of tunnels to hosts that do not answer. Default: neither ends.
        loss: Detection of lost packets. Default: by `rto`, and by reports of trimmed packets.
        max_timeouts: Timeouts in a row after which the tunnel is re-established (appendix A: "a large number");
            at least 1. Default: 16.
        messages: Order in which a tunnel sends the native messages to one host. Default: turns.
        ordered: Whether the receiver puts stacks' packets in order before delivery. Default: "auto", if there are
            such stacks. Packets of native messages carry their position and are not reordered (section 5, reorder
            queue).
        paths: Path ids that a tunnel's packets use in turn, 1 to 65536 (256 in compact headers); 1 is a single
            path. Default: 256.
        policy: Sharing of a receiver's link among its senders. Default: fair (section 5).
        pull_catch_up: Most time lost by late wake-ups of the pacer that is made up with pulls sent at once, up to
            1s: for hosts whose timers are late. Default: 0s; the timers of a simulation never are.
        pull_quanta: Most quanta that one PULL grants, 1 to 1024: with more there are fewer PULLs, and burstier
            senders. Default: 1 (section 5: "one MTU of credit" each "MTU-time").
        pull_rate: Rate of the frames arriving at a host, gaps included: those that it grants credit for and the
            control frames that answer its own; never more than its own link's. Default: "auto", the link's rate
            (section 5: "the aggregate arrival rate matches the incoming link speed").
        reorder: Packets that a tunnel may have in flight and the receiver keeps out of order: 2 to 512, half an
            epoch. Default: "auto", twice the window, at least 50 (section 8.5: 50 with DPDK, 150 in the kernel).
        reorder_timeout: Time that the reorder queue waits for a missing packet before it delivers the rest.
            Default: "auto", four times `rto`. The paper has a limit only when a connection is re-established.
        rto: Retransmission timeout of packets and requests. Default: "auto", the maximum round-trip time: where
            switches trim, with all data queues on the path full, and one header queue; else with one congested
            link. The paper gives none.
        window: Credit of each tunnel, rounded up to whole packets, agreed between both ends. Default: "auto", the
            largest bandwidth-delay product of any path, serialisation included; at least 10 packets (section 5:
            "typically 10 to 30 packets"). Tunnels inside servers, where NICs are faster, use the paths there.
    """

    _path = 'transport.eqds'
    _tag = 'eqds'
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'ack_after': ('ack-after', ''),
        'bounds': ('bounds', ''),
        'burst': ('burst', ''),
        'busy_ceiling': ('busy-ceiling', ''),
        'control_frame': ('control-frame', ''),
        'eqif': ('eqif', ''),
        'first_window': ('first-window', ''),
        'header': ('header', ''),
        'headers': ('headers', ''),
        'life': ('life', ''),
        'loss': ('loss', ''),
        'max_timeouts': ('max-timeouts', ''),
        'messages': ('messages', ''),
        'ordered': ('ordered', ''),
        'paths': ('paths', ''),
        'policy': ('policy', 'kind'),
        'pull_catch_up': ('pull-catch-up', ''),
        'pull_quanta': ('pull-quanta', ''),
        'pull_rate': ('pull-rate', ''),
        'reorder': ('reorder', ''),
        'reorder_timeout': ('reorder-timeout', ''),
        'rto': ('rto', ''),
        'window': ('window', ''),
    }

    def __init__(
        self,
        *,
        ack_after: str | None = None,
        bounds: Literal["fixed"] | Literal["measured"] | None = None,
        burst: Literal["auto"] | bool | None = None,
        busy_ceiling: str | None = None,
        control_frame: str | None = None,
        eqif: "Eqif" | Mapping[str, Any] | None = None,
        first_window: str | None = None,
        header: str | None = None,
        headers: Literal["compact"] | Literal["wide"] | None = None,
        life: "Life" | Mapping[str, Any] | None = None,
        loss: "EqdsLoss" | Mapping[str, Any] | None = None,
        max_timeouts: int | None = None,
        messages: Literal["queue"] | Literal["turns"] | None = None,
        ordered: Literal["auto"] | bool | None = None,
        paths: int | None = None,
        policy: Literal["fair"] | Literal["hosts"] | Literal["priority"] | Mapping[str, Any] | Sequence[int] | None = None,
        pull_catch_up: str | None = None,
        pull_quanta: int | None = None,
        pull_rate: str | None = None,
        reorder: Literal["auto", "off"] | int | None = None,
        reorder_timeout: str | None = None,
        rto: str | None = None,
        window: str | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            ack_after=ack_after,
            bounds=bounds,
            burst=burst,
            busy_ceiling=busy_ceiling,
            control_frame=control_frame,
            eqif=eqif,
            first_window=first_window,
            header=header,
            headers=headers,
            life=life,
            loss=loss,
            max_timeouts=max_timeouts,
            messages=messages,
            ordered=ordered,
            paths=paths,
            policy=policy,
            pull_catch_up=pull_catch_up,
            pull_quanta=pull_quanta,
            pull_rate=pull_rate,
            reorder=reorder,
            reorder_timeout=reorder_timeout,
            rto=rto,
            window=window,
        )



class EqdsLoss(Part):
    """Detection of lost packets.

    Args:
        gap_wait: Time for which the reorder queue has a gap before the receiver reports the missing packets as
            lost, once each. "auto": the round-trip time of an idle path. Default: "off", receivers report trimmed
            packets only.
        path_margin: Reordering that a path may cause: a packet is lost if one sent later on the same path has
            arrived, and the round trip of that one plus this margin has passed (RACK, RFC 8985, per path).
            "auto": a quarter of the round-trip time of an idle path. Default: "off", only timeouts and reports of
            trimming count.
        rto_ceiling: Largest measured timeout, back-off included, not below `rto-floor`. Default: 1s.
        rto_floor: Smallest measured timeout, 10ns or more. Default: 1ms.
        timeout: Origin of the retransmission timeout. Default: fixed.
    """

    _path = 'transport.eqds.loss'
    _tag = ''
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'gap_wait': ('gap-wait', ''),
        'path_margin': ('path-margin', ''),
        'rto_ceiling': ('rto-ceiling', ''),
        'rto_floor': ('rto-floor', ''),
        'timeout': ('timeout', ''),
    }

    def __init__(
        self,
        *,
        gap_wait: str | None = None,
        path_margin: str | None = None,
        rto_ceiling: str | None = None,
        rto_floor: str | None = None,
        timeout: Literal["fixed"] | Literal["measured"] | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            gap_wait=gap_wait,
            path_margin=path_margin,
            rto_ceiling=rto_ceiling,
            rto_floor=rto_floor,
            timeout=timeout,
        )



class Eqif(Part):
    """Sending EQIFs: which of a host's stacks send through tunnels, and how (EQDS, section 6).

    Args:
        encapsulation: Bytes that a tunnel adds to a frame that it carries. Default: "auto": IPv4 20, UDP 8, the
            tunnel header; the inner Ethernet header and FCS replace the outer ones ("for testing, we encapsulated
            plain IP traffic"). At most 1KB.
        native: Share of native messages, if there are any. Their service is reliable and unordered.
        rdma: Packets of queue pairs, acknowledgements included, go through tunnels. Default: absent, they do not.
        tcp: TCP's packets, acknowledgements included, go through tunnels. Default: absent, they do not.
    """

    _path = 'transport.eqds.eqif'
    _tag = ''
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'encapsulation': ('encapsulation', ''),
        'native': ('native', ''),
        'rdma': ('rdma', ''),
        'tcp': ('tcp', ''),
    }

    def __init__(
        self,
        *,
        encapsulation: str | None = None,
        native: "Share" | Mapping[str, Any] | None = None,
        rdma: "RdmaEqif" | Mapping[str, Any] | None = None,
        tcp: "TcpEqif" | Mapping[str, Any] | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            encapsulation=encapsulation,
            native=native,
            rdma=rdma,
            tcp=tcp,
        )



class Explicit(Part):
    """Nodes and links, listed one by one. Names are free; a node that appears in `hosts` is a host.

    Args:
        hosts: Names of the hosts, in the order of their numbers. Each has exactly one link.
        links: The links. Several between the same two switches are parallel links.
        switches: Names of the switches. None: two hosts back to back.
    """

    _path = 'topology.explicit'
    _tag = 'explicit'
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'hosts': ('hosts', ''),
        'links': ('links', ''),
        'switches': ('switches', ''),
    }

    def __init__(
        self,
        hosts: Sequence[str],
        links: Sequence["ExplicitLink" | Mapping[str, Any]],
        *,
        switches: Sequence[str] | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            hosts=hosts,
            links=links,
            switches=switches,
        )



class ExplicitLink(Part):
    """One link of an [`Explicit`] topology.

    Args:
        between: Names of the two nodes that the link joins.
        delay: Propagation delay of each direction; above zero.
        rate: Rate of each direction; above zero.
    """

    _path = 'topology.explicit.links'
    _tag = ''
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'between': ('between', ''),
        'delay': ('delay', ''),
        'rate': ('rate', ''),
    }

    def __init__(
        self,
        between: Sequence[str],
        rate: str,
        delay: str,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            between=between,
            rate=rate,
            delay=delay,
        )



class FairQueued(Part):
    """Parameters of [`BufferConfig::FairQueued`].

    Args:
        per_flow: Bytes of one queue that may wait for one output; packets beyond are dropped. Default: off, only
            the longest queue loses packets.
        per_port: Bytes of each class that may wait for one output. Beyond, the first packet of the longest queue
            is dropped. "auto": twice the largest bandwidth-delay product of any path; "off": without limit, for
            which timeouts count 64 MB.
        quantum: Bytes that a queue may send in its turn, at least 64. "auto": a full frame, which makes the work
            per packet constant.
        queues: Queues per output and class, 1 to 65,536; flows with the same hash share one. Default: 1024
            (McKenney, INFOCOM 1990: several times the number of flows).
    """

    _path = 'switch.buffer.fair-queued'
    _tag = 'fair-queued'
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'per_flow': ('per-flow', ''),
        'per_port': ('per-port', ''),
        'quantum': ('quantum', ''),
        'queues': ('queues', ''),
    }

    def __init__(
        self,
        *,
        per_flow: str | None = None,
        per_port: str | None = None,
        quantum: str | None = None,
        queues: int | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            per_flow=per_flow,
            per_port=per_port,
            quantum=quantum,
            queues=queues,
        )



class FatTree(Part):
    """Three-tier fat-tree of k-port switches: k pods, k^3/4 hosts, full bisection.

    Wired as in Al-Fares et al., "A Scalable, Commodity Data Center Network Architecture" (SIGCOMM 2008), section 3:
    every pod has k/2 edge and k/2 aggregation switches, all edges connect to all aggregations of their pod, and
    aggregation `j` of each pod connects to the cores from `j * k/2` to `(j + 1) * k/2 - 1`, so that core `c` reaches
    pod `p` through its port `p`.

    Hosts are numbered pod by pod, edge by edge: `h0`, `h1` and so on; switches are `pod0-edge0`, `pod0-agg0`, `core0`.
    On edges, host ports come first; on aggregations, edge ports come first. A pod is a unit; cores are assigned to the
    pods in turn.

    Args:
        k: Ports per switch; even, 2 to 80. Hosts: k^3/4.
        link: Parameters of every link.
    """

    _path = 'topology.fat-tree'
    _tag = 'fat-tree'
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'k': ('k', ''),
        'link': ('link', ''),
    }

    def __init__(
        self,
        k: int,
        link: "Link" | Mapping[str, Any],
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            k=k,
            link=link,
        )



class Fixed(Part):
    """A window and a rate that never change.

    Args:
        rate: Rate on the wire (headers and gaps included) that a flow keeps to. Default: off. "auto" is the
            hosts' line rate.
        window: Bytes on the wire (headers and gaps included) that a flow may have in flight. Default: off. "auto"
            is the bandwidth-delay product of its path.
    """

    _path = 'transport.congestion.fixed'
    _tag = 'fixed'
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'rate': ('rate', ''),
        'window': ('window', ''),
    }

    def __init__(
        self,
        *,
        rate: str | None = None,
        window: str | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            rate=rate,
            window=window,
        )



class FlowFile(Part):
    """Flows in a file (ns-3 RDMA `flow.txt`, htsim `.cm`).

    Args:
        path: Path, relative to the scenario file. The dialect is detected.
        priorities: Source of the priorities of these flows. Default: "file".
        start_unit: Unit of starts in htsim's `.cm`, which the file does not give. Default: "auto".
    """

    _path = 'workload.flows'
    _tag = 'flows'
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'path': ('path', ''),
        'priorities': ('priorities', ''),
        'start_unit': ('start-unit', ''),
    }

    def __init__(
        self,
        path: str,
        *,
        priorities: Literal["file"] | Literal["nic"] | None = None,
        start_unit: Literal["auto"] | Literal["ns"] | Literal["ps"] | Literal["us"] | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            path=path,
            priorities=priorities,
            start_unit=start_unit,
        )



class FlowQueues(Part):
    """Parameters of [`Trimming::flow_queues`].

    Args:
        per_flow: Bytes of one queue that may wait for one output; a packet of a flow that has as much is cut.
            Default: off, only the longest queue is cut.
        quantum: Bytes that a queue may send in its turn, at least 64. "auto": a full frame, which makes the work
            per packet constant.
        queues: Queues per output and class, 1 to 65,536; flows with the same hash share one. Default: 1024
            (McKenney, INFOCOM 1990: several times the number of flows).
    """

    _path = 'switch.buffer.trimming.flow-queues'
    _tag = ''
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'per_flow': ('per-flow', ''),
        'quantum': ('quantum', ''),
        'queues': ('queues', ''),
    }

    def __init__(
        self,
        *,
        per_flow: str | None = None,
        quantum: str | None = None,
        queues: int | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            per_flow=per_flow,
            quantum=quantum,
            queues=queues,
        )



class Flowlet(Part):
    """Parameters of [`BalancingConfig::Flowlet`].

    Args:
        choice: Choice of the new path.
        entries: Flows that a switch can tell apart, at least 1; flows with equal hashes count as one.
        gap: Silence after which a flow may change its path. Nothing is reordered if paths differ by less. "auto":
            the base round-trip time of the longest path.
    """

    _path = 'switch.balancing.flowlet'
    _tag = 'flowlet'
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'choice': ('choice', ''),
        'entries': ('entries', ''),
        'gap': ('gap', ''),
    }

    def __init__(
        self,
        *,
        choice: Literal["least-loaded"] | Literal["random"] | None = None,
        entries: int | None = None,
        gap: str | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            choice=choice,
            entries=entries,
            gap=gap,
        )



class GilbertElliott(Part):
    """Parameters of [`LossModel::GilbertElliott`].

    Args:
        bad_to_good: Probability that the channel turns good after a packet in the bad state.
        good_to_bad: Probability that the channel turns bad after a packet in the good state.
        loss_in_bad: Probability that a packet is lost in the bad state.
        loss_in_good: Probability that a packet is lost in the good state.
    """

    _path = 'loss.model.gilbert-elliott'
    _tag = 'gilbert-elliott'
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'bad_to_good': ('bad-to-good', ''),
        'good_to_bad': ('good-to-bad', ''),
        'loss_in_bad': ('loss-in-bad', ''),
        'loss_in_good': ('loss-in-good', ''),
    }

    def __init__(
        self,
        good_to_bad: float | str,
        bad_to_good: float | str,
        *,
        loss_in_bad: float | str | None = None,
        loss_in_good: float | str | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            good_to_bad=good_to_bad,
            bad_to_good=bad_to_good,
            loss_in_bad=loss_in_bad,
            loss_in_good=loss_in_good,
        )



class GoBackN(Part):
    """Go-back-N, the loss recovery of RoCE NICs.

    Args:
        ack_every: With coalesced acknowledgements: the last packet of a message is acknowledged, and any other
            once this many have come since the last acknowledgement. Default: 256; 1 to 65,535. NICs do not say;
            Linux and UCX let ConnectX ask for an acknowledgement every 2^8 packets (`log_ack_req_freq`).
        ack_interval: With coalesced acknowledgements: the time after the last one that also makes one due, so
            that timeouts see progress of slow flows. Default: "auto", the round-trip time of the longest empty
            path. "off": only ack-every.
        acks: The data packets that are acknowledged. Default: "auto", which is coalesced, or per-packet where
            congestion control or bdp-cap needs that.
        bdp_cap: Packets a flow may have in flight. Default: "off": RoCE has no BDP-FC. "auto": the path's
            bandwidth-delay product over the largest data frame, like in IRN.
        nack: The frequency of reports of a gap. Default: once-per-gap.
        nack_processing: The time that a sender needs to process a NACK; it sends nothing meanwhile. Default: 0us.
            NICs do not say.
        rto: The retransmission timeout. Default: "auto", which is RTO_high (the maximum round-trip time with one
            congested link; IRN, section 4.1) without PFC; with PFC, where pauses of any length delay
            acknowledgements, 67.1 ms or RTO_high if that is longer (InfiniBand's timeout code 14, which perftest
            and many applications ask for). Off where nothing is acknowledged, and with PFC where there is a rto-
            low.
        rto_low: A shorter timeout when few packets are in flight, like IRN's RTO_low: "IRN with go-back-N" keeps
            it (IRN, section 4.3). Default: "off": RoCE has one timeout. "auto": like IRN's, 100us, or rto where
            that is less; off where rto is.
        rto_low_packets: N: rto-low applies when at most this many packets are in flight. Default: 3.
        rto_restart: The events that restart the retransmission timer while packets are in flight; going back
            always does. Default: progress.
    """

    _path = 'transport.recovery.go-back-n'
    _tag = 'go-back-n'
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'ack_every': ('ack-every', ''),
        'ack_interval': ('ack-interval', ''),
        'acks': ('acks', ''),
        'bdp_cap': ('bdp-cap', ''),
        'nack': ('nack', 'kind'),
        'nack_processing': ('nack-processing', ''),
        'rto': ('rto', ''),
        'rto_low': ('rto-low', ''),
        'rto_low_packets': ('rto-low-packets', ''),
        'rto_restart': ('rto-restart', ''),
    }

    def __init__(
        self,
        *,
        ack_every: int | None = None,
        ack_interval: str | None = None,
        acks: Literal["auto"] | Literal["coalesced"] | Literal["none"] | Literal["per-packet"] | Literal["without-pfc"] | None = None,
        bdp_cap: Literal["auto", "off"] | int | None = None,
        nack: Mapping[str, Any] | str | None = None,
        nack_processing: str | None = None,
        rto: str | None = None,
        rto_low: str | None = None,
        rto_low_packets: int | None = None,
        rto_restart: Literal["any-ack"] | Literal["progress"] | Literal["retransmission"] | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            ack_every=ack_every,
            ack_interval=ack_interval,
            acks=acks,
            bdp_cap=bdp_cap,
            nack=nack,
            nack_processing=nack_processing,
            rto=rto,
            rto_low=rto_low,
            rto_low_packets=rto_low_packets,
            rto_restart=rto_restart,
        )



class GoalFile(Part):
    """Schedule in a GOAL file, as text or binary. Each repetition is a job.

    Messages begin when the sender is ready, whether or not the receiver already waits (like RDMA Writes into a
    registered buffer). A rank's computations share its processors by their `cpu`; sending and receiving take none. All
    messages of a host leave by its one NIC, whatever `nic` says.

    Args:
        hosts: Hosts of the ranks, the first ranks on the first host. Absent: all hosts, in their order.
        path: Path, relative to the scenario file.
        ranks_per_host: Number of ranks that share a host, at least 1; messages between them take no time.
        repeat: Number of executions of the schedule, at least 1.
        start: Time at which the schedule begins.
    """

    _path = 'workload.goal'
    _tag = 'goal'
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'hosts': ('hosts', ''),
        'path': ('path', ''),
        'ranks_per_host': ('ranks-per-host', ''),
        'repeat': ('repeat', ''),
        'start': ('start', ''),
    }

    def __init__(
        self,
        path: str,
        *,
        hosts: Sequence[int | str] | str | None = None,
        ranks_per_host: int | None = None,
        repeat: int | None = None,
        start: str | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            path=path,
            hosts=hosts,
            ranks_per_host=ranks_per_host,
            repeat=repeat,
            start=start,
        )



class Homa(Part):
    """Homa (Montazeri et al., SIGCOMM 2018). Switches serve priorities strictly; `nic.ack-class` is that of grants.

    Args:
        cutoffs_after: Received messages after which a receiver chooses the priorities of unscheduled packets
            anew, 1 to 1,000,000. The paper's are computed beforehand from the workload. Default: 100.
        overcommitment: Messages to which a receiver grants at a time, each from another host, 1 to 1,024 (section
            3.5). Without it, as many as there are priorities of scheduled packets at the receiver.
        priorities: Priorities of data, from 0 on, 1 to 7. The paper uses 8; this simulator has 7. Default: 7.
        resend_interval: Silence after which a receiver asks for missing packets, and a sender without any answer
            repeats its first one. "auto": five times the maximum round-trip time with one congested link. The
            paper has "a few milliseconds".
        resend_ranges: Ranges of missing packets that a receiver asks for after a silence, 1 to 1,024. The paper
            asks for the first (section 3.7), draft-ousterhout-tsvwg-homa-00 for all. Default: 64.
        rtt_bytes: Bytes on the wire of a message that are sent without a grant, and that grants keep under way
            (RTTbytes, section 3.2). Rounded up to whole packets. "auto": those with which a host fills the
            longest empty path.
        unscheduled_priorities: Priorities of unscheduled packets, the highest ones: 1 to `priorities`. Without
            it, receivers choose by the share of unscheduled bytes in what arrives (section 3.4), and begin with
            half of all. If all priorities are those of unscheduled packets, scheduled ones share the lowest.
    """

    _path = 'transport.homa'
    _tag = 'homa'
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'cutoffs_after': ('cutoffs-after', ''),
        'overcommitment': ('overcommitment', ''),
        'priorities': ('priorities', ''),
        'resend_interval': ('resend-interval', ''),
        'resend_ranges': ('resend-ranges', ''),
        'rtt_bytes': ('rtt-bytes', ''),
        'unscheduled_priorities': ('unscheduled-priorities', ''),
    }

    def __init__(
        self,
        *,
        cutoffs_after: int | None = None,
        overcommitment: int | None = None,
        priorities: int | None = None,
        resend_interval: str | None = None,
        resend_ranges: int | None = None,
        rtt_bytes: str | None = None,
        unscheduled_priorities: int | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            cutoffs_after=cutoffs_after,
            overcommitment=overcommitment,
            priorities=priorities,
            resend_interval=resend_interval,
            resend_ranges=resend_ranges,
            rtt_bytes=rtt_bytes,
            unscheduled_priorities=unscheduled_priorities,
        )



class Hpcc(Part):
    """HPCC. The defaults are the paper's (SIGCOMM'19, sections 3.3 and 5.1).

    Args:
        additive_increase: W_AI: bytes that the window grows by. Default: "auto", the capacity above the target,
            shared among `flows`: B_NIC x T x (1 - eta) / N (section 3.3).
        base_rtt: T: the round-trip time of the empty fabric. Default: "auto", that of the flow's path,
            serialisation included, or with `auto = "longest-path"` of the longest; where the path holds fewer
            than 8 frames, longer by the time of one frame on the slowest link.
        flows: N: flows that a link is expected to carry at most, at least 1. Default: 100, which gives the
            paper's 80 bytes at its 100 Gb/s and 13 us.
        header: The bytes that INT adds to each data packet and each acknowledgement on the wire: 2 bytes, and 8
            per switch. Default: 42B, the paper's, for up to 5 switches.
        line_rate: The rate at which flows start and which they never exceed (B_NIC). Default: "auto", the hosts'
            line rate.
        max_stage: maxStage: round trips of additive increase before the window follows the utilisation even below
            its target. Default: 5.
        min_rate: The lowest rate. The paper does not say; default: 100Mbps, like in its authors' simulator.
        target_utilisation: Eta: the utilisation that links are kept at, above 0, at most 1. Default: 0.95.
    """

    _path = 'transport.congestion.hpcc'
    _tag = 'hpcc'
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'additive_increase': ('additive-increase', ''),
        'base_rtt': ('base-rtt', ''),
        'flows': ('flows', ''),
        'header': ('header', ''),
        'line_rate': ('line-rate', ''),
        'max_stage': ('max-stage', ''),
        'min_rate': ('min-rate', ''),
        'target_utilisation': ('target-utilisation', ''),
    }

    def __init__(
        self,
        *,
        additive_increase: str | None = None,
        base_rtt: str | None = None,
        flows: int | None = None,
        header: str | None = None,
        line_rate: str | None = None,
        max_stage: int | None = None,
        min_rate: str | None = None,
        target_utilisation: float | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            additive_increase=additive_increase,
            base_rtt=base_rtt,
            flows=flows,
            header=header,
            line_rate=line_rate,
            max_stage=max_stage,
            min_rate=min_rate,
            target_utilisation=target_utilisation,
        )



class Incast(Part):
    """Incast: one receiver fetches an amount of data that is striped over many senders (IRN section 4.4.3), once or repeatedly. A repetition is a group of flows ([`FlowSpec::group`]).

    Args:
        connections: Connections of each sender, at least 1, with a flow each, which begin together.
        interval: Time from the beginning of each repetition to the next one's. Absent: each begins when the one
            before it has been received completely.
        jitter: Largest random delay of each sender's beginning, so that senders do not act in step.
        receiver: Receiver. Absent: drawn anew for each repetition.
        repeat: Number of repetitions, at least 1.
        senders: Senders: a number of hosts, drawn anew for each repetition, or a list of hosts.
        size: All data of a repetition, striped evenly over all connections; at least a byte for each.
        stagger: Time from each sender's start to the next one's.
        start: Time at which the first repetition begins.
    """

    _path = 'workload.incast'
    _tag = 'incast'
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'connections': ('connections', ''),
        'interval': ('interval', ''),
        'jitter': ('jitter', ''),
        'receiver': ('receiver', ''),
        'repeat': ('repeat', ''),
        'senders': ('senders', ''),
        'size': ('size', ''),
        'stagger': ('stagger', ''),
        'start': ('start', ''),
    }

    def __init__(
        self,
        size: str,
        senders: Sequence[int | str] | int | str,
        *,
        connections: int | None = None,
        interval: str | None = None,
        jitter: str | None = None,
        receiver: int | str | None = None,
        repeat: int | None = None,
        stagger: str | None = None,
        start: str | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            size=size,
            senders=senders,
            connections=connections,
            interval=interval,
            jitter=jitter,
            receiver=receiver,
            repeat=repeat,
            stagger=stagger,
            start=start,
        )



class InputQueued(Part):
    """Parameters of [`BufferConfig::InputQueued`].

    Args:
        arbitration: Order in which an output serves inputs. Default: round-robin (IRN section 4.1).
        crossbar_speed_up: Speed-up of a crossbar between inputs and outputs, relative to the input's link, 1 to
            64: each input feeds one output at a time. Needs round-robin arbitration, and no NetRT. Default:
            "off", every input may feed all outputs at once (the IRN paper does not say).
        per_port: Buffer of each input port: of each lossless priority in use there, and of all lossy ones
            together. "auto": twice the largest bandwidth-delay product of any path (IRN section 4.1: 240 KB), or
            what PFC needs where that is more (twice the headroom of any link, and its X-ON gap: where links are
            short, or faster or longer than those of hosts), or what the topology file gives each port (htsim's
            `Queue_Up` and `Queue_Down`); "off": without limit, for which timeouts count 64 MB in each switch.
            Where links differ, every port gets what the fastest host or the longest and fastest link needs. Slow
            links then take long to empty the buffer, and RTO_high, which waits for that, is as long: give a size
            there.
    """

    _path = 'switch.buffer.input-queued'
    _tag = 'input-queued'
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'arbitration': ('arbitration', ''),
        'crossbar_speed_up': ('crossbar-speed-up', ''),
        'per_port': ('per-port', ''),
    }

    def __init__(
        self,
        *,
        arbitration: Literal["oldest-first"] | Literal["round-robin"] | None = None,
        crossbar_speed_up: Literal["auto", "off"] | float | None = None,
        per_port: str | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            arbitration=arbitration,
            crossbar_speed_up=crossbar_speed_up,
            per_port=per_port,
        )



class Irn(Part):
    """IRN, the improved RoCE NIC.

    Args:
        bdp_cap: BDP-FC: packets a flow may have in flight. Default: "auto", the bandwidth-delay product of its
            path (with `auto = "longest-path"`, like in the paper, the largest of any) over the largest data
            frame, rounded up. Where serialisation makes an idle path hold over a twentieth more than that (short
            links), or the path has a link slower than its sender's, "auto" is what the path holds. "off" is no
            limit (section 4.3).
        extra_header: Header bytes that each data packet carries on top of RoCE's (section 6.3: 16 bytes of RETH
            at worst). Default: 0B.
        holes: Whether NACKs carry the three newest holes, like MELO's: one NACK can then replace several, and the
            packets of a lost NACK are not taken for lost. The paper's NACKs name one packet (section 3.1). Holes
            take 12 bytes. Not in mode "hls", and with SACKs only. Default: false.
        mode: The rule by which a packet counts as lost: the paper's text, its authors' hardware code, or the text
            and one more rule. Default: refined.
        nack_threshold: NACKs without cumulative progress that it takes to begin recovery; more than 1 tolerates
            reordering (section 7). Not in mode "hls". Default: 1.
        partial_acks: Up to which packet a cumulative acknowledgement during recovery shows that the packet is
            lost where it stops. "auto": the rule of `mode`; without SACKs, and with time stamps, latest. Other
            values need SACKs and no time stamps, and not mode "hls". Default: auto.
        probes: Packets that a timeout retransmits at most: the first sends one, each following timeout without an
            answer in between twice as many as the one before, up to this. A burst of losses may be limited by
            packets, not time; one packet per timeout outlasts it slowly. The paper's timeouts always send one
            (section 3.1), QUIC's up to two (RFC 9002, section 6.2.4). Not in mode "hls". Default: 1.
        retransmit_delay: Fetch delay: the least time between the detection of a loss and the retransmission
            (section 6.3). Default: 0us.
        rto: The source of the timeout. Default: "static", RTO_low and RTO_high (section 3.1).
        rto_high: RTO_high, the timeout otherwise. Default: "auto", the maximum round-trip time with one congested
            link (section 4.1).
        rto_low: RTO_low, the timeout when few packets are in flight. Default: "auto", 100 us (section 4.1), or
            one and a half times the round trip of the empty network where that is longer, or RTO_high where that
            is less; "off": RTO_high alone.
        rto_low_packets: N: RTO_low applies when at most this many packets are in flight. Default: 3.
        rto_restart: The events that restart the retransmission timer while packets are in flight. The paper does
            not say; any-ack comes closest to its authors' trace of a receiver. Default: any-ack.
        sack: Whether the sender keeps a bitmap of selective acknowledgements. Without it, the sender knows of one
            loss per round trip (section 4.3). Not in mode "hls". Default: true.
        time_stamps: Whether echoed time stamps show losses: a packet that was sent before one that has arrived,
            and has not arrived itself, is lost, even if it was retransmitted. For paths that keep order; not in
            the paper, which leaves such losses to the timeout. Not in mode "hls", and with SACKs only. Default:
            false.
        timeouts: Whether a timeout leads to retransmission. Default: "auto", which is off with PFC and on without
            (section 4.1).
    """

    _path = 'transport.recovery.irn'
    _tag = 'irn'
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'bdp_cap': ('bdp-cap', ''),
        'extra_header': ('extra-header', ''),
        'holes': ('holes', ''),
        'mode': ('mode', ''),
        'nack_threshold': ('nack-threshold', ''),
        'partial_acks': ('partial-acks', ''),
        'probes': ('probes', ''),
        'retransmit_delay': ('retransmit-delay', ''),
        'rto': ('rto', 'kind'),
        'rto_high': ('rto-high', ''),
        'rto_low': ('rto-low', ''),
        'rto_low_packets': ('rto-low-packets', ''),
        'rto_restart': ('rto-restart', ''),
        'sack': ('sack', ''),
        'time_stamps': ('time-stamps', ''),
        'timeouts': ('timeouts', ''),
    }

    def __init__(
        self,
        *,
        bdp_cap: Literal["auto", "off"] | int | None = None,
        extra_header: str | None = None,
        holes: bool | None = None,
        mode: Literal["hls"] | Literal["paper"] | Literal["refined"] | None = None,
        nack_threshold: int | None = None,
        partial_acks: Literal["auto"] | Literal["first"] | Literal["latest"] | Literal["none"] | None = None,
        probes: int | None = None,
        retransmit_delay: str | None = None,
        rto: "DynamicRto" | Literal["static"] | Mapping[str, Any] | None = None,
        rto_high: str | None = None,
        rto_low: str | None = None,
        rto_low_packets: int | None = None,
        rto_restart: Literal["any-ack"] | Literal["progress"] | Literal["retransmission"] | None = None,
        sack: bool | None = None,
        time_stamps: bool | None = None,
        timeouts: Literal["auto"] | Literal["off"] | Literal["on"] | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            bdp_cap=bdp_cap,
            extra_header=extra_header,
            holes=holes,
            mode=mode,
            nack_threshold=nack_threshold,
            partial_acks=partial_acks,
            probes=probes,
            retransmit_delay=retransmit_delay,
            rto=rto,
            rto_high=rto_high,
            rto_low=rto_low,
            rto_low_packets=rto_low_packets,
            rto_restart=rto_restart,
            sack=sack,
            time_stamps=time_stamps,
            timeouts=timeouts,
        )



class LeafSpine(Part):
    """Two tiers: every leaf connects to every spine.

    Hosts are numbered leaf by leaf: `h0`, `h1` and so on; switches are `leaf0`, `leaf1`, `spine0`, `spine1`. On leaves,
    host ports come first, then spine by spine. A leaf is a unit; spines are assigned to the leaves in turn.

    Args:
        host_link: Links from hosts to leaves.
        hosts_per_leaf: Hosts on each leaf, at least 1.
        leaves: Leaf (top-of-rack) switches, at least 1.
        parallel_links: Parallel links between each leaf and each spine, at least 1.
        spine_link: Links from leaves to spines. Oversubscription follows from counts and rates.
        spines: Spine switches, at least 1.
    """

    _path = 'topology.leaf-spine'
    _tag = 'leaf-spine'
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'host_link': ('host-link', ''),
        'hosts_per_leaf': ('hosts-per-leaf', ''),
        'leaves': ('leaves', ''),
        'parallel_links': ('parallel-links', ''),
        'spine_link': ('spine-link', ''),
        'spines': ('spines', ''),
    }

    def __init__(
        self,
        leaves: int,
        spines: int,
        hosts_per_leaf: int,
        host_link: "Link" | Mapping[str, Any],
        spine_link: "Link" | Mapping[str, Any],
        *,
        parallel_links: int | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            leaves=leaves,
            spines=spines,
            hosts_per_leaf=hosts_per_leaf,
            host_link=host_link,
            spine_link=spine_link,
            parallel_links=parallel_links,
        )



class Life(Part):
    """End of tunnels: after a pause, for lack of memory, or because the other host does not answer.

    Args:
        idle_timeout: Pause after which either end of a tunnel drops its state. Default: "off", never; "auto" is
            "off".
        memory: Memory of a sender that has dropped a tunnel. Default: number.
        most_tunnels: Tunnels that a host may have open in each direction, 1 or more: beyond that, the one among
            the idle that has paused longest is dropped. Default: "off", any number; "auto" is "off".
        tells: Whether the other end is told (section 5: "each will inform the other"). Default: true.
        unreachable_after: Silence after which a host with packets to send gives the other host up, counted from
            the first timeout. A stack's packets that wait are dropped then; native messages are tried again.
            Meanwhile the timeout doubles up to 64-fold, and re-establishing the tunnel does not reset it.
            Default: "off", never; "auto" is "off".
    """

    _path = 'transport.eqds.life'
    _tag = ''
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'idle_timeout': ('idle-timeout', ''),
        'memory': ('memory', ''),
        'most_tunnels': ('most-tunnels', ''),
        'tells': ('tells', ''),
        'unreachable_after': ('unreachable-after', ''),
    }

    def __init__(
        self,
        *,
        idle_timeout: str | None = None,
        memory: Literal["nothing"] | Literal["number"] | None = None,
        most_tunnels: Literal["auto", "off"] | int | None = None,
        tells: bool | None = None,
        unreachable_after: str | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            idle_timeout=idle_timeout,
            memory=memory,
            most_tunnels=most_tunnels,
            tells=tells,
            unreachable_after=unreachable_after,
        )



class Link(Part):
    """Parameters of a link.

    Args:
        delay: Propagation delay of each direction; above zero, at most 100 s.
        rate: Rate of each direction; above zero, at most 100 Tb/s.
    """

    _path = 'topology.fat-tree.link'
    _tag = ''
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'delay': ('delay', ''),
        'rate': ('rate', ''),
    }

    def __init__(
        self,
        rate: str,
        delay: str,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            rate=rate,
            delay=delay,
        )



class LinkFailure(Part):
    """Links that fail at one time, in both directions.

    Args:
        at: Time at which the links fail, from the beginning of the run.
        link: Links that fail.
        until: Time at which the links work again. Absent: never. Of the packets on the wire, only those that
            arrive while the link is down are lost: a failure shorter than a link's delay spares some of them.
    """

    _path = 'failures'
    _tag = ''
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'at': ('at', ''),
        'link': ('link', ''),
        'until': ('until', ''),
    }

    def __init__(
        self,
        link: int | str,
        at: str,
        *,
        until: str | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            link=link,
            at=at,
            until=until,
        )



class LinkHeadroom(Part):
    """Headroom of some links.

    Args:
        delay: Largest propagation delay of the links. Of several rows that fit, the one with the shortest holds.
        headroom: Buffer kept free for each lossless class of an input on such a link.
        rate: Rate of the links.
    """

    _path = 'switch.pfc.headroom-by-link'
    _tag = ''
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'delay': ('delay', ''),
        'headroom': ('headroom', ''),
        'rate': ('rate', ''),
    }

    def __init__(
        self,
        rate: str,
        delay: str,
        headroom: str,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            rate=rate,
            delay=delay,
            headroom=headroom,
        )



class Loss(Part):
    """Rule by which some links lose packets.

    Args:
        direction: Directions of the links.
        link: Links that lose packets.
        model: Model that decides which packets are lost. Each direction of each link decides on its own, and for
            each kind of packet separately, so that the n-th data packet of a direction has the same fate in every
            series, however many acknowledgements pass.
        packets: Kinds of packets that are lost.
    """

    _path = 'loss'
    _tag = ''
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'direction': ('direction', ''),
        'link': ('link', ''),
        'model': ('model', 'kind'),
        'packets': ('packets', ''),
    }

    def __init__(
        self,
        link: int | str,
        model: "BitErrors" | "Bursty" | "GilbertElliott" | "RandomLoss" | Mapping[str, Any] | Sequence[int] | str,
        *,
        direction: Literal["a-to-b"] | Literal["b-to-a"] | Literal["both"] | Literal["down"] | Literal["up"] | None = None,
        packets: Literal["ack"] | Literal["all"] | Literal["data"] | Literal["pause"] | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            link=link,
            model=model,
            direction=direction,
            packets=packets,
        )



class Melo(Part):
    """MELO: selective retransmission with bitmaps from a pool that a NIC's queue pairs share.

    Args:
        bdp_cap: Packets a flow may have in flight. Default: "off": MELO leaves that to congestion control.
            "auto": the path's bandwidth-delay product over the largest data frame, like in IRN.
        block_bits: Bits of a block: 8, 16, 32 or 64. Smaller blocks waste fewer bits at the ends of a list and
            take more pointers. Default: 8 ("MELO chooses 1B as the block size", section 3.2.3).
        on_chip: Connections whose state a NIC's chip holds, receiving and as many sending; at least 1. The least
            recently used one is swapped out: its blocks return to the pool until it is used again (section
            3.2.5). The time for swapping is not modelled. Default: "off", all of them, and so is "auto".
        pool_bits: Bits in each of a NIC's two pools, the receivers' and the senders': whole blocks, and at most
            65,536 of them. Default: 1024 (section 4); one bandwidth-delay product of 100 Gb/s and 200 us takes
            2560 (section 3.2.3). Ids of more than 256 blocks have more than the paper's 8 bits.
        reorder_buffer: Packets that each connection's reorder buffer in the host's memory holds: the limit on how
            far beyond the expected packet one may arrive and be kept. 1 to 32768, since a hole's start has 16
            bits. Default: "auto", as many as the pool has bits: one bandwidth-delay product of the network that
            the pool is made for (section 3.2.2).
        resend: Whether a hole that was retransmitted is retransmitted again when a later NACK names it again.
        rto: The retransmission timeout, after which every unacknowledged packet is sent again. The paper gives
            none. Default: "auto", which is the maximum round-trip time with one congested link without PFC, like
            for go-back-N; with PFC, whose pauses make round trips long, 500us, the value in the simulator of
            DCQCN's authors, which the paper's extends (there the timeout is off unless asked for). "off": what no
            NACK repairs stays lost, and so does a last packet.
    """

    _path = 'transport.recovery.melo'
    _tag = 'melo'
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'bdp_cap': ('bdp-cap', ''),
        'block_bits': ('block-bits', ''),
        'on_chip': ('on-chip', ''),
        'pool_bits': ('pool-bits', ''),
        'reorder_buffer': ('reorder-buffer', ''),
        'resend': ('resend', ''),
        'rto': ('rto', ''),
    }

    def __init__(
        self,
        *,
        bdp_cap: Literal["auto", "off"] | int | None = None,
        block_bits: int | None = None,
        on_chip: Literal["auto", "off"] | int | None = None,
        pool_bits: int | None = None,
        reorder_buffer: Literal["auto", "off"] | int | None = None,
        resend: Literal["as-named"] | Literal["once"] | None = None,
        rto: str | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            bdp_cap=bdp_cap,
            block_bits=block_bits,
            on_chip=on_chip,
            pool_bits=pool_bits,
            reorder_buffer=reorder_buffer,
            resend=resend,
            rto=rto,
        )



class MixtureOfExperts(Part):
    """Layers with one expert per host (Shazeer et al. 2017; GShard, 2020): each host computes, sends its data to the experts that its tokens chose (dispatch), the experts compute, and send the results back (combine). A repetition of a group is a job.

    Args:
        compute: Time that each host computes before each dispatch.
        expert_compute: Time that each expert computes when all of its input has arrived.
        layers: Layers in a repetition, at least 1.
        repeat: Number of repetitions, at least 1. A host begins the next as soon as it is done itself.
        size: Bytes that each host sends to all experts of a layer together, its own among them; at least a byte
            per host of a group.
        skew: Skew of the choice of experts: the n-th most popular one is chosen in proportion to n^-skew (Zipf),
            with another order in each layer. 0: all equally often. At least 0.
        start: Time at which the first repetition begins.
        team: Hosts that take part.
    """

    _path = 'workload.mixture-of-experts'
    _tag = 'mixture-of-experts'
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'compute': ('compute', ''),
        'expert_compute': ('expert-compute', ''),
        'layers': ('layers', ''),
        'repeat': ('repeat', ''),
        'size': ('size', ''),
        'skew': ('skew', ''),
        'start': ('start', ''),
        'team': ('team', ''),
    }

    def __init__(
        self,
        size: str,
        *,
        compute: str | None = None,
        expert_compute: str | None = None,
        layers: int | None = None,
        repeat: int | None = None,
        skew: float | None = None,
        start: str | None = None,
        team: "Team" | Mapping[str, Any] | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            size=size,
            compute=compute,
            expert_compute=expert_compute,
            layers=layers,
            repeat=repeat,
            skew=skew,
            start=start,
            team=team,
        )



class Ndp(Part):
    """NDP (Handley et al., SIGCOMM 2017). Needs switches that trim (`switch.buffer.trimming`).

    Args:
        initial_window: Packets sent before the first pull, 1 to 4,194,304. "auto": those that the path carries in
            a base round-trip time, rounded up, plus those that a switch queue holds (section 3.2).
        path_penalty: Whether a path is skipped once for each packet trimmed on it (the path penalty of section
            3.2.3, in the simpler form of htsim's EQDS). Default: false.
        paths: Paths over which a sender spreads its packets, in a new random order in each round: different
            hashes for ECMP, which may share links. 1 to 4,096; default: 128.
        pull_interval: Time between two pulls of a host. "auto": from `pull-rate`.
        pull_rate: Rate of pulls, as a share of that of full packets on the hosts' links; above 0. Default: 1;
            htsim has 0.99.
        rto: Timeout after which an unanswered packet is retransmitted: its header was lost, too. "auto": five
            times the maximum round-trip time with all queues on the path full: headers of an incast may wait for
            each other, and spurious retransmissions are expensive.
    """

    _path = 'transport.ndp'
    _tag = 'ndp'
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'initial_window': ('initial-window', ''),
        'path_penalty': ('path-penalty', ''),
        'paths': ('paths', ''),
        'pull_interval': ('pull-interval', ''),
        'pull_rate': ('pull-rate', ''),
        'rto': ('rto', ''),
    }

    def __init__(
        self,
        *,
        initial_window: Literal["auto", "off"] | int | None = None,
        path_penalty: bool | None = None,
        paths: int | None = None,
        pull_interval: str | None = None,
        pull_rate: float | str | None = None,
        rto: str | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            initial_window=initial_window,
            path_penalty=path_penalty,
            paths=paths,
            pull_interval=pull_interval,
            pull_rate=pull_rate,
            rto=rto,
        )



class NetRt(Part):
    """NetRT in top-of-rack switches: selective retransmission between them, invisible to NICs.

    Args:
        buffer: Early packets that a destination ToR holds per host port. "auto": one bandwidth-delay product
            (section III-D1), as for `pool`; "off": none, nothing is recovered.
        enabled: Whether top-of-rack switches run NetRT.
        flows: Flows with state in a ToR, in each direction, at least 1 (section III-D1: 10,000). Further flows
            pass untouched.
        idle: Silence after which a flow's state may be reused for another.
        interval: Interval at which a request is repeated. "auto": the base round-trip time of the longest path;
            the paper says "at time intervals".
        k_high: Requested bytes from which the lowest rate applies (section IV: 100 KB). More than `k-low`.
        k_low: Requested bytes of a host up to which duplicates are sent at its line rate (section IV: 20 KB).
        lifetime: Age above which duplicates are evicted first when a pool is full, regardless of requests.
            "auto": four intervals; "off": only the number of requests counts, as in the paper (section III-C1),
            and duplicates of flows that were requested and have ended stay forever.
        max_rate: Share of the line rate just above `k-low`, above 0 and at most 1 (section IV: 0.5).
        min_rate: Share of the line rate from `k-high` on, above 0 and at most `max-rate` (section IV: 0.01).
        patience: Time that a gap must last before it is requested. Default: zero, as in the paper.
        pause: Whether a sender is paused (PFC, on its own link only) while its duplicates are sent below line
            rate. Default: true.
        pool: Duplicates that a source ToR keeps per host port. "auto": one bandwidth-delay product (section
            III-C1), including serialisation on links, and two more frames, the second of which reveals a loss;
            "off": none, every request remains unfulfilled.
        priority: 802.1p priority of requests, answers and duplicates, 0 to 7. Default: 6.
        quiet: Time for which a source ToR does not retransmit a duplicate again, regardless of requests. "auto":
            three quarters of `interval`, the time for the copy to arrive and a request to return, on paths of up
            to eight links: `interval` covers all eight, `quiet` the six between ToRs. "off": each request is
            answered, as in the paper.
    """

    _path = 'switch.netrt'
    _tag = ''
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'buffer': ('buffer', ''),
        'enabled': ('enabled', ''),
        'flows': ('flows', ''),
        'idle': ('idle', ''),
        'interval': ('interval', ''),
        'k_high': ('k-high', ''),
        'k_low': ('k-low', ''),
        'lifetime': ('lifetime', ''),
        'max_rate': ('max-rate', ''),
        'min_rate': ('min-rate', ''),
        'patience': ('patience', ''),
        'pause': ('pause', ''),
        'pool': ('pool', ''),
        'priority': ('priority', ''),
        'quiet': ('quiet', ''),
    }

    def __init__(
        self,
        *,
        buffer: str | None = None,
        enabled: bool | None = None,
        flows: int | None = None,
        idle: str | None = None,
        interval: str | None = None,
        k_high: str | None = None,
        k_low: str | None = None,
        lifetime: str | None = None,
        max_rate: float | None = None,
        min_rate: float | None = None,
        patience: str | None = None,
        pause: bool | None = None,
        pool: str | None = None,
        priority: int | None = None,
        quiet: str | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            buffer=buffer,
            enabled=enabled,
            flows=flows,
            idle=idle,
            interval=interval,
            k_high=k_high,
            k_low=k_low,
            lifetime=lifetime,
            max_rate=max_rate,
            min_rate=min_rate,
            patience=patience,
            pause=pause,
            pool=pool,
            priority=priority,
            quiet=quiet,
        )



class Nic(Part):
    """NICs of all hosts, and how packets look on the wire.

    Args:
        ack_class: Traffic class of acknowledgements; higher classes go first. The IRN paper does not say whether
            they are prioritised. Default: the class of data.
        ack_frame: Bytes of the whole frame of an acknowledgement.
        clock_skew: Largest deviation of each NIC's clock from its nominal rate. Each is drawn from the seed,
            uniformly between this much too slow and this much too fast, and scales the times of its frames on the
            link. 0ppb to 10000ppm; IEEE 802.3 allows 100ppm. Default: 0ppb, which keeps equal NICs in step for
            ever. Switches keep the nominal time.
        cnp_class: Traffic class of congestion notifications; RoCE deployments use a higher one. Default: the
            class of data.
        cnp_frame: Bytes of the whole frame of a congestion notification.
        data_class: Traffic class of data: its 802.1Q priority, 0 to 7. Flow lists may give flows other ones.
        gap: Bytes that every frame takes on the wire beyond itself: preamble and inter-packet gap.
        header: Headers and trailers of a data frame: Ethernet, IPv4, UDP, BTH, ICRC, FCS.
        jitter: Largest delay of a NIC whose link was idle, drawn uniformly from the seed for each packet with
            which it begins to send: the time to fetch a packet varies. Packets that follow each other without a
            pause are not delayed. 0ps to 1ms. Default: 0ps.
        mac_poll: Interval at which a queue pair that wants to send asks whether the link is free: the IRN paper's
            queue pairs poll the MAC layer "periodically" (section 4.1). A free link serves the first to ask and
            is idle until then. 0ps to 1ms; 0ps: queue pairs take turns instead. For queue pairs with a flow each:
            not beside TCP, NDP, EQDS or `[workload.verbs]`, and not with qp-burst. Default: 0ps.
        mac_poll_phases: Phase at which a queue pair asks in each `mac-poll`. "fixed": always the same, so that
            one which asks just after another can find the link busy again and again. "random": drawn anew for
            each packet that the NIC sends. Default: random.
        mtu: Payload of a full packet, 64 B to 9000 B.
        preset: Preset of a commercial NIC, such as "connectx-7": its published properties replace defaults here
            and in transport, where a scheme has them. None of them is calibrated. `selvedge presets` lists all.
        qp_burst: Packets that a queue pair sends before the next one's turn, at least 1. The IRN paper has queue
            pairs poll the MAC layer "periodically": round-robin, packet by packet, by default. With EQDS's
            tunnels, these are turns at the RDMA engine.
        verbs_headers: Headers of packets of `[workload.verbs]` beyond those of RoCE, where both sides use "irn"
            or "melo". "selvedge": those of the software RNIC. "irn": the costs of the IRN paper's section 6.3,
            which are 6 bytes in each packet of a Send, a RETH of 16 bytes in each of a Write (in RoCE the first
            alone has it), none in answers to Reads; and 3 bytes where section 5.3.2 adds a sequence number
            (requests with an answer, the last packet of a Write with an immediate). "roce": none, as if IRN
            needed none. Default: selvedge.
    """

    _path = 'nic'
    _tag = ''
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'ack_class': ('ack-class', ''),
        'ack_frame': ('ack-frame', ''),
        'clock_skew': ('clock-skew', ''),
        'cnp_class': ('cnp-class', ''),
        'cnp_frame': ('cnp-frame', ''),
        'data_class': ('data-class', ''),
        'gap': ('gap', ''),
        'header': ('header', ''),
        'jitter': ('jitter', ''),
        'mac_poll': ('mac-poll', ''),
        'mac_poll_phases': ('mac-poll-phases', ''),
        'mtu': ('mtu', ''),
        'preset': ('preset', ''),
        'qp_burst': ('qp-burst', ''),
        'verbs_headers': ('verbs-headers', ''),
    }

    def __init__(
        self,
        *,
        ack_class: int | None = None,
        ack_frame: str | None = None,
        clock_skew: str | None = None,
        cnp_class: int | None = None,
        cnp_frame: str | None = None,
        data_class: int | None = None,
        gap: str | None = None,
        header: str | None = None,
        jitter: str | None = None,
        mac_poll: str | None = None,
        mac_poll_phases: Literal["fixed"] | Literal["random"] | None = None,
        mtu: str | None = None,
        preset: Literal["connectx-4", "connectx-5", "connectx-6", "connectx-7", "connectx-8", "bluefield-2", "bluefield-3", "pollara-400", "thor-2"] | None = None,
        qp_burst: int | None = None,
        verbs_headers: Literal["irn"] | Literal["roce"] | Literal["selvedge"] | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            ack_class=ack_class,
            ack_frame=ack_frame,
            clock_skew=clock_skew,
            cnp_class=cnp_class,
            cnp_frame=cnp_frame,
            data_class=data_class,
            gap=gap,
            header=header,
            jitter=jitter,
            mac_poll=mac_poll,
            mac_poll_phases=mac_poll_phases,
            mtu=mtu,
            preset=preset,
            qp_burst=qp_burst,
            verbs_headers=verbs_headers,
        )



class Pause(Part):
    """PAUSE from the EQIF to its engine.

    Args:
        above: Bytes waiting for some destination above which the engine is paused. Default: 584KB, the 375
            packets of section 8.5.
        resume: Most bytes waiting for any destination when the engine resumes, not above `above`. Default:
            "auto", half of `above`; the paper does not say.
    """

    _path = 'transport.eqds.eqif.rdma.back-pressure.pause'
    _tag = 'pause'
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'above': ('above', ''),
        'resume': ('resume', ''),
    }

    def __init__(
        self,
        *,
        above: str | None = None,
        resume: str | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            above=above,
            resume=resume,
        )



class Permutation(Part):
    """Permutation: each host sends to one other host and receives from one, by a random derangement, drawn from the seed.

    Args:
        hosts: Hosts that take part. Absent: all hosts.
        jitter: Largest random delay of each host's beginning, so that hosts do not act in step.
        repeat: Number of flows that each host sends to its partner, one after another; at least 1.
        size: Size of each flow; above zero.
        start: Time at which the first flows begin.
    """

    _path = 'workload.permutation'
    _tag = 'permutation'
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'hosts': ('hosts', ''),
        'jitter': ('jitter', ''),
        'repeat': ('repeat', ''),
        'size': ('size', ''),
        'start': ('start', ''),
    }

    def __init__(
        self,
        size: str,
        *,
        hosts: Sequence[int | str] | str | None = None,
        jitter: str | None = None,
        repeat: int | None = None,
        start: str | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            size=size,
            hosts=hosts,
            jitter=jitter,
            repeat=repeat,
            start=start,
        )



class Pfc(Part):
    """Priority flow control (802.1Qbb).

    Args:
        classes: Lossless classes. Classes without PFC drop packets when the buffer is full.
        enabled: Whether switches pause their peers instead of dropping packets.
        headroom: Buffer kept free per input for packets that arrive after X-OFF. "auto": the link's bandwidth-
            delay product plus what else may come before the pause takes effect (three frames, the pause frame);
            the IRN paper counts the product alone. "off": none, which is refused while PFC is enabled.
        headroom_by_link: Headroom of "auto" on links of some rates, by their delays: a table like those of switch
            operators. Links without a row have the usual "auto".
        quanta: Pause time in each X-OFF, in quanta of 512 bit times; refreshed at half of it while the input
            stays full. At least 3, so that ports that pause can also send other frames.
        xon: Bytes at or below which an input also sends X-ON, however low its X-OFF threshold has become.
        xon_gap: Distance below its X-OFF threshold at which an input sends X-ON. The IRN paper gives no
            hysteresis; one frame avoids a pause frame per packet. "auto": two frames.
    """

    _path = 'switch.pfc'
    _tag = ''
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'classes': ('classes', ''),
        'enabled': ('enabled', ''),
        'headroom': ('headroom', ''),
        'headroom_by_link': ('headroom-by-link', ''),
        'quanta': ('quanta', ''),
        'xon': ('xon', ''),
        'xon_gap': ('xon-gap', ''),
    }

    def __init__(
        self,
        *,
        classes: Sequence[int] | None = None,
        enabled: bool | None = None,
        headroom: str | None = None,
        headroom_by_link: Sequence["LinkHeadroom" | Mapping[str, Any]] | None = None,
        quanta: int | None = None,
        xon: str | None = None,
        xon_gap: str | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            classes=classes,
            enabled=enabled,
            headroom=headroom,
            headroom_by_link=headroom_by_link,
            quanta=quanta,
            xon=xon,
            xon_gap=xon_gap,
        )



class Pipeline(Part):
    """Pipeline-parallel training: the hosts of a group are the stages of a model. Micro-batches go forward through all stages, and their gradients back. A repetition of a group is a job.

    Args:
        backward: Time of a stage's backward computation for a micro-batch. Absent: twice as long as forward.
        forward: Time of a stage's forward computation for a micro-batch.
        micro_batches: Micro-batches of a repetition, at least 1.
        order: Order of a stage's computations.
        repeat: Number of repetitions, at least 1.
        size: Bytes that a stage passes on of each micro-batch, forward and back; above zero.
        start: Time at which the first repetition begins.
        team: Hosts that take part.
    """

    _path = 'workload.pipeline'
    _tag = 'pipeline'
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'backward': ('backward', ''),
        'forward': ('forward', ''),
        'micro_batches': ('micro-batches', ''),
        'order': ('order', ''),
        'repeat': ('repeat', ''),
        'size': ('size', ''),
        'start': ('start', ''),
        'team': ('team', ''),
    }

    def __init__(
        self,
        size: str,
        micro_batches: int,
        forward: str,
        *,
        backward: str | None = None,
        order: Literal["all-forward-first"] | Literal["one-forward-one-backward"] | None = None,
        repeat: int | None = None,
        start: str | None = None,
        team: "Team" | Mapping[str, Any] | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            size=size,
            micro_batches=micro_batches,
            forward=forward,
            backward=backward,
            order=order,
            repeat=repeat,
            start=start,
            team=team,
        )



class Poisson(Part):
    """Poisson arrivals: every host starts flows at exponentially distributed intervals, each to a random other host.

    Args:
        flows: Number of flows, at least 1. Absent: without limit.
        hosts: Hosts that take part. Absent: all hosts.
        load: Payload that each sender offers, as a fraction of its link's rate; headers come on top.
        pairs: Pairs of senders and receivers.
        sizes: Sizes of flows.
        start: Time at which arrivals begin.
        until: Time at which arrivals end. Absent: never.
    """

    _path = 'workload.poisson'
    _tag = 'poisson'
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'flows': ('flows', ''),
        'hosts': ('hosts', ''),
        'load': ('load', ''),
        'pairs': ('pairs', ''),
        'sizes': ('sizes', 'sizes'),
        'start': ('start', ''),
        'until': ('until', ''),
    }

    def __init__(
        self,
        load: float | str,
        sizes: Mapping[str, Any] | Sequence[str] | str,
        *,
        flows: int | None = None,
        hosts: Sequence[int | str] | str | None = None,
        pairs: Literal["other-half"] | Literal["uniform"] | None = None,
        start: str | None = None,
        until: str | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            load=load,
            sizes=sizes,
            flows=flows,
            hosts=hosts,
            pairs=pairs,
            start=start,
            until=until,
        )



class RandomLoss(Part):
    """Parameters of [`LossModel::Random`].

    Args:
        rate: Probability that a packet is lost.
    """

    _path = 'loss.model.random'
    _tag = 'random'
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'rate': ('rate', ''),
    }

    def __init__(
        self,
        rate: float | str,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            rate=rate,
        )



class RdmaEqif(Part):
    """The RDMA EQIF, which drops nothing but slows the engine down.

    Args:
        back_pressure: Means of slowing the engine down.
        delay: Time from the EQIF's decision until the engine acts on it: on a CNP, a PAUSE, or the end of a
            PAUSE. At most 1ms. Default: 0s; the paper calls the delay constant (section 6) and gives no value.
        engine_rate: Rate at which the engine hands packets to the EQIF. Default: "auto", the hosts' line rate;
            "off": at once.
        service: Service of the tunnels. Default: "auto", as `ordered` says.
        share: Share of the uplink.
    """

    _path = 'transport.eqds.eqif.rdma'
    _tag = ''
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'back_pressure': ('back-pressure', 'kind'),
        'delay': ('delay', ''),
        'engine_rate': ('engine-rate', ''),
        'service': ('service', ''),
        'share': ('share', ''),
    }

    def __init__(
        self,
        *,
        back_pressure: "Cnp" | "Pause" | Literal["auto"] | Mapping[str, Any] | None = None,
        delay: str | None = None,
        engine_rate: str | None = None,
        service: Literal["auto"] | Literal["ordered"] | Literal["unordered"] | Literal["unreliable"] | None = None,
        share: "Share" | Mapping[str, Any] | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            back_pressure=back_pressure,
            delay=delay,
            engine_rate=engine_rate,
            service=service,
            share=share,
        )



class Red(Part):
    """RED on the packets that wait for one destination (Floyd and Jacobson 1993). Marks are spaced evenly, not random.

    Args:
        drops: Whether packets that are not ECN-capable are dropped instead of marked. Default: false, they are
            dropped when the queue is full (section 6).
        max: Average queue from which every packet is marked, not below `min`. Default: "auto", as `min`.
        min: Average queue below which nothing is marked. Default: "auto", 16 packets (appendix B: DCTCP with K =
            16), or one and a half windows (`window`) where that is more, but not above `max`. Only waiting
            packets can be asked for, a round trip ahead: with less than a window, several senders to one receiver
            alternate between bursts and requests.
        probability: Probability of a mark just below `max`; rises linearly from zero at `min`. Default: 1.
        weight: Exponent of the average's weight, 0 to 16: each packet moves it by 2^-weight of the difference; an
            idle queue ages as if packets came at `pull-rate`. Default: 0, the length itself, as for DCTCP.
    """

    _path = 'transport.eqds.eqif.tcp.red'
    _tag = ''
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'drops': ('drops', ''),
        'max': ('max', ''),
        'min': ('min', ''),
        'probability': ('probability', ''),
        'weight': ('weight', ''),
    }

    def __init__(
        self,
        *,
        drops: bool | None = None,
        max: Literal["auto", "off"] | int | None = None,
        min: Literal["auto", "off"] | int | None = None,
        probability: float | str | None = None,
        weight: int | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            drops=drops,
            max=max,
            min=min,
            probability=probability,
            weight=weight,
        )



class Share(Part):
    """Share of an EQIF in an uplink that several EQIFs use.

    Args:
        priority: Strict priority over EQIFs of lower priority, 0 to 7. Default: 0.
        weight: Packets' worth of bytes per turn among EQIFs of equal priority, at least 1. Default: 1.
    """

    _path = 'transport.eqds.eqif.native'
    _tag = ''
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'priority': ('priority', ''),
        'weight': ('weight', ''),
    }

    def __init__(
        self,
        *,
        priority: int | None = None,
        weight: int | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            priority=priority,
            weight=weight,
        )



class SharedBuffer(Part):
    """Parameters of [`BufferConfig::SharedBuffer`].

    Args:
        egress_alpha: Multiple of the free shared buffer that a lossy output queue may hold; above zero.
        headroom_pool: Bytes of the total that serve as headroom of all inputs together, each of which takes up to
            its own headroom (SAI: XOFF_SIZE above 0). Usually less than the sum of all headroom, and possibly too
            little: then packets are dropped in spite of PFC. "auto" and "off": each lossless class of each input
            has its own headroom.
        ingress_alpha: Multiple of the free shared buffer that an input may hold, with PFC, before it pauses its
            peer; above zero.
        shared: Bytes of the total that inputs and queues share: less than the headroom leaves, where the rest is
            set aside for other uses. "auto" and "off": all that the headroom leaves.
        total: Buffer of the whole switch, headroom included.
    """

    _path = 'switch.buffer.shared-buffer'
    _tag = 'shared-buffer'
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'egress_alpha': ('egress-alpha', ''),
        'headroom_pool': ('headroom-pool', ''),
        'ingress_alpha': ('ingress-alpha', ''),
        'shared': ('shared', ''),
        'total': ('total', ''),
    }

    def __init__(
        self,
        *,
        egress_alpha: float | None = None,
        headroom_pool: str | None = None,
        ingress_alpha: float | None = None,
        shared: str | None = None,
        total: str | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            egress_alpha=egress_alpha,
            headroom_pool=headroom_pool,
            ingress_alpha=ingress_alpha,
            shared=shared,
            total=total,
        )



class Stop(Part):
    """Conditions that end a run: the earliest holds. Without any: when all flows are done.

    Args:
        flows: Number of flows after which no flow begins; the run ends when all of them are done. Flows that
            follow others are counted from time to time, so a few more of them may begin; closed loops begin with
            as many as they have outstanding.
        time: Simulated time at which the run ends, finished or not.
    """

    _path = 'stop'
    _tag = ''
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'flows': ('flows', ''),
        'time': ('time', ''),
    }

    def __init__(
        self,
        *,
        flows: int | None = None,
        time: str | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            flows=flows,
            time=time,
        )



class Sweep(Part):
    """Grid of values: every series runs at every point of it.

    Args:
        cross: Keys whose values are crossed: each value of one with each of the others. By dotted key: a list of
            values, or a range { from, to } with a `step`, a `factor` or a `count`, both ends included.
        only: Points to keep: those that have all values of at least one of these tables. Without any, all are
            kept.
        skip: Points to leave out: those that have all values of one of these tables. By swept key: a value, a
            list of which any fits, or bounds { at-least, at-most }.
        zip: Keys that change together: the first values of all, then the second ones. Each table is one axis of
            the grid.
    """

    _path = 'sweep'
    _tag = ''
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'cross': ('cross', ''),
        'only': ('only', ''),
        'skip': ('skip', ''),
        'zip': ('zip', ''),
    }

    def __init__(
        self,
        *,
        cross: Mapping[str, Any] | None = None,
        only: Sequence[Mapping[str, Any]] | None = None,
        skip: Sequence[Mapping[str, Any]] | None = None,
        zip: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            cross=cross,
            only=only,
            skip=skip,
            zip=zip,
        )



class Swift(Part):
    """Swift. The defaults are the paper's (SIGCOMM'20) where it gives any, otherwise htsim's; flows start at line rate.

    Args:
        additive_increase: ai: growth of the window per round trip below the target delay, in packets. Default: 1.
        base_target: base_target: the target delay of a path without links, and of a large window; sets the length
            of the queue. Default: "auto", the round-trip time of the empty path: a queue of one bandwidth-delay
            product.
        beta: Beta: the weight of the delay's excess in decreases, above 0, at most 1. Default: 0.8.
        flow_scaling: fs_range: the largest part of the target that small windows add (section 3.5, flow-based
            scaling). Default: "auto", five times the base target; "off": nothing.
        flow_scaling_from: fs_min_cwnd: the window, in packets, up to which all of fs_range is added. Above 0.
            Default: 0.1.
        flow_scaling_to: fs_max_cwnd: the window, in packets, from which on nothing is added. Default: 100.
        initial_window: Bytes on the wire that a flow may have in flight at first. Default: "auto", the amount
            that fills its empty path: the line rate, or a slower receiver's, times the round-trip time. Flows
            start at line rate.
        max_decrease: max_mdf: the largest part of the window that one decrease takes, above 0, below 1. Default:
            0.5.
        max_window: The largest window. Default: "auto", the window of a flow that keeps the path's delay at its
            target, alone and at line rate.
        min_cwnd: The smallest window, in packets; a packet per many round trips. Above 0. Default: 0.001.
        packet: The unit of windows. Default: "auto", a full frame.
        per_link: h-bar: the part of the target that each link of a path adds (section 3.5, topology-based
            scaling). Default: "auto", its share of the round-trip time of the empty path; "off": nothing.
        reset_after: RETX_RESET_THRESHOLD: timeouts in a row that reset the window to the smallest. At least 1.
            Default: 5.
    """

    _path = 'transport.congestion.swift'
    _tag = 'swift'
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'additive_increase': ('additive-increase', ''),
        'base_target': ('base-target', ''),
        'beta': ('beta', ''),
        'flow_scaling': ('flow-scaling', ''),
        'flow_scaling_from': ('flow-scaling-from', ''),
        'flow_scaling_to': ('flow-scaling-to', ''),
        'initial_window': ('initial-window', ''),
        'max_decrease': ('max-decrease', ''),
        'max_window': ('max-window', ''),
        'min_cwnd': ('min-cwnd', ''),
        'packet': ('packet', ''),
        'per_link': ('per-link', ''),
        'reset_after': ('reset-after', ''),
    }

    def __init__(
        self,
        *,
        additive_increase: float | None = None,
        base_target: str | None = None,
        beta: float | None = None,
        flow_scaling: str | None = None,
        flow_scaling_from: float | None = None,
        flow_scaling_to: float | None = None,
        initial_window: str | None = None,
        max_decrease: float | None = None,
        max_window: str | None = None,
        min_cwnd: float | None = None,
        packet: str | None = None,
        per_link: str | None = None,
        reset_after: int | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            additive_increase=additive_increase,
            base_target=base_target,
            beta=beta,
            flow_scaling=flow_scaling,
            flow_scaling_from=flow_scaling_from,
            flow_scaling_to=flow_scaling_to,
            initial_window=initial_window,
            max_decrease=max_decrease,
            max_window=max_window,
            min_cwnd=min_cwnd,
            packet=packet,
            per_link=per_link,
            reset_after=reset_after,
        )



class Switch(Part):
    """Switches of the fabric.

    Args:
        balancing: Choice among several equally short paths of a packet.
        buffer: Kind of the buffer: where packets wait, and how it is shared.
        ecn: ECN marking.
        netrt: Loss recovery between top-of-rack switches (NetRT).
        pfc: Priority flow control.
        preset: Preset of a commercial switch, such as "tomahawk-4-z9664f": published properties of its buffer,
            headroom and marking replace defaults here. None of them is calibrated. `selvedge presets` lists all.
        weights: Weights of the priorities, that of priority 0 first, from 0 to 65535. Priorities with a weight
            share each output by deficit round robin: in its turn, one may send as many full frames as its weight.
            Together they stand where the highest of them stands; priorities above it go first, others below it
            last. Default: all 0, every priority goes before all lower ones.
    """

    _path = 'switch'
    _tag = ''
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'balancing': ('balancing', 'kind'),
        'buffer': ('buffer', 'kind'),
        'ecn': ('ecn', ''),
        'netrt': ('netrt', ''),
        'pfc': ('pfc', ''),
        'preset': ('preset', ''),
        'weights': ('weights', ''),
    }

    def __init__(
        self,
        *,
        balancing: "Drill" | "Flowlet" | Literal["ecmp"] | Literal["spray"] | Mapping[str, Any] | None = None,
        buffer: "FairQueued" | "InputQueued" | "SharedBuffer" | "Trimming" | Mapping[str, Any] | None = None,
        ecn: "Ecn" | Mapping[str, Any] | None = None,
        netrt: "NetRt" | Mapping[str, Any] | None = None,
        pfc: "Pfc" | Mapping[str, Any] | None = None,
        preset: Literal["spectrum-1", "spectrum-2", "spectrum-3", "spectrum-4", "spectrum-sn6600ld", "tomahawk", "tomahawk-2-7260cx3", "tomahawk-2-z9264f", "tomahawk-3", "tomahawk-3-z9332f", "tomahawk-4", "tomahawk-4-z9664f", "tomahawk-5-7060x6", "tomahawk-5-z9864f", "trident-2", "trident-3-7050cx3", "trident-3-s5232f"] | None = None,
        weights: Sequence[int] | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            balancing=balancing,
            buffer=buffer,
            ecn=ecn,
            netrt=netrt,
            pfc=pfc,
            preset=preset,
            weights=weights,
        )



class Tcp(Part):
    """TCP, as used by iWARP or by a kernel.

    Args:
        ack_every: Full segments after which an acknowledgement is sent at once. Default: 2 (RFC 5681, section
            4.2).
        congestion: Congestion control. Default: NewReno.
        delayed_ack: Longest wait of an acknowledgement for a second segment, at most 500 ms (RFC 1122, section
            4.2.3.2). Default: "auto", a quarter of `min-rto` up to 40 ms, of the shortest of any host. "off"
            acknowledges each segment.
        dup_thresh: Duplicate acknowledgements that trigger fast retransmit; with RACK, segments SACKed after
            which reordering is not waited for unless seen before. Default: 3 (RFC 5681, section 3.2).
        ecn: ECN (RFC 3168; with DCTCP RFC 8257). Default: "auto", on with DCTCP.
        eifel: Whether reductions of the window are taken back if time stamps show that nothing was lost (Eifel,
            RFC 3522 and 4015). Only with time stamps. Default: true.
        fin: Whether a flow ends with FINs. Default: false.
        handshake: Whether a flow begins with a three-way handshake. Default: false: connections exist already.
        hystart: Growth of the round-trip time that ends slow start (HyStart++'s MIN_RTT_THRESH, RFC 9406), or an
            eighth of the round-trip time up to four times as much. "off": slow start ends by losses and marks
            only. Default: "auto", 4 ms, which no fabric's queue reaches.
        initial_rto: Retransmission timeout before the first sample. Default: "auto", 1 s with a handshake (RFC
            6298, rule 2.1), else `min-rto`: the connection counts as an old one.
        initial_ssthresh: Slow start threshold before the first loss. Default: off, unlimited (RFC 5681, section
            3.1).
        initial_window: Segments that may be sent before the first acknowledgement. Default: "auto", 10, as many
            as `initial-window-cap` allows, and at least 2.
        initial_window_cap: Most octets of an initial window that is "auto": with "auto" 14600 (RFC 6928, section
            2). Default: off, as in Linux.
        limited_transmit: New segments on the first duplicate acknowledgements (RFC 3042). Default: true.
        loss_detection: How losses are detected before a timeout. Without SACK always by duplicate
            acknowledgements. Default: "rack".
        max_rto: Largest retransmission timeout. Default: 60s (RFC 6298, rule 2.5).
        min_rto: Smallest retransmission timeout. Default: "auto", the maximum round-trip time with one congested
            link (IRN's RTO_high), packets waiting in EQIFs included, and at least one and a half of an empty
            network's (of three such round trips through EQDS tunnels that do not burst, where data and
            acknowledgement wait for credit): the acknowledgement's delay may be a quarter of the timeout. RFC
            6298 says 1 s, Linux 200 ms.
        mss: Payload of a full segment, 64 B to 9000 B; the MSS option announces it plus the bytes of the time
            stamps. Default: "auto", `nic.mtu`.
        nagle: Nagle's algorithm (RFC 9293, section 3.7.4): a short segment waits while anything is in flight.
            Default: false, as for messages.
        prr: Whether fast recovery sends in proportion to what is delivered (RFC 9937). Only with SACK. Default:
            true.
        receive_buffer: Receive buffer, up to 1 GiB: the largest window. Default: "auto", eight bandwidth-delay
            products, at least 64 KiB.
        sack: Selective acknowledgements (RFC 2018) and recovery by them (RFC 6675); without, NewReno's (RFC
            6582). Default: true.
        slow_start_limit: Segments by which one acknowledgement may enlarge the window in slow start: 1 in RFC
            5681, 2 in RFC 3465; "off", as many as acknowledged, in Linux. Default: "auto", 8 with HyStart++ (RFC
            9406, section 4.3), else 1.
        subflows: Connections that carry a flow together, each on its own path: 1 to 8. More than 1 means MPTCP
            (RFC 8684), modelled as far as congestion is concerned: data goes to any subflow with room, and is not
            retransmitted on another. Default: 1.
        tail_loss_probe: Whether the tail of a flight whose acknowledgement does not come is probed after two
            round trips (RFC 8985, section 7). Only with RACK. Default: true.
        time_wait: Time for which the end that closed first remembers the connection: twice the segment lifetime.
            Default: 1ms; RFC 9293 says 4 minutes.
        timestamps: Time stamps (RFC 7323): 12 bytes per segment, round-trip samples of retransmissions, too,
            protection against wrapped sequence numbers. Default: true.
        window_scaling: Window scaling (RFC 7323, section 2), without which windows end at 64 KiB. Default: true.
    """

    _path = 'beside.tcp'
    _tag = ''
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'ack_every': ('ack-every', ''),
        'congestion': ('congestion', 'kind'),
        'delayed_ack': ('delayed-ack', ''),
        'dup_thresh': ('dup-thresh', ''),
        'ecn': ('ecn', ''),
        'eifel': ('eifel', ''),
        'fin': ('fin', ''),
        'handshake': ('handshake', ''),
        'hystart': ('hystart', ''),
        'initial_rto': ('initial-rto', ''),
        'initial_ssthresh': ('initial-ssthresh', ''),
        'initial_window': ('initial-window', ''),
        'initial_window_cap': ('initial-window-cap', ''),
        'limited_transmit': ('limited-transmit', ''),
        'loss_detection': ('loss-detection', ''),
        'max_rto': ('max-rto', ''),
        'min_rto': ('min-rto', ''),
        'mss': ('mss', ''),
        'nagle': ('nagle', ''),
        'prr': ('prr', ''),
        'receive_buffer': ('receive-buffer', ''),
        'sack': ('sack', ''),
        'slow_start_limit': ('slow-start-limit', ''),
        'subflows': ('subflows', ''),
        'tail_loss_probe': ('tail-loss-probe', ''),
        'time_wait': ('time-wait', ''),
        'timestamps': ('timestamps', ''),
        'window_scaling': ('window-scaling', ''),
    }

    def __init__(
        self,
        *,
        ack_every: int | None = None,
        congestion: "Bbr" | "CongestionDctcp" | "Cubic" | "Vegas" | Mapping[str, Any] | None = None,
        delayed_ack: str | None = None,
        dup_thresh: int | None = None,
        ecn: Literal["auto"] | Literal["off"] | Literal["on"] | None = None,
        eifel: bool | None = None,
        fin: bool | None = None,
        handshake: bool | None = None,
        hystart: str | None = None,
        initial_rto: str | None = None,
        initial_ssthresh: str | None = None,
        initial_window: Literal["auto", "off"] | int | None = None,
        initial_window_cap: str | None = None,
        limited_transmit: bool | None = None,
        loss_detection: Literal["dupacks"] | Literal["rack"] | None = None,
        max_rto: str | None = None,
        min_rto: str | None = None,
        mss: str | None = None,
        nagle: bool | None = None,
        prr: bool | None = None,
        receive_buffer: str | None = None,
        sack: bool | None = None,
        slow_start_limit: Literal["auto", "off"] | int | None = None,
        subflows: int | None = None,
        tail_loss_probe: bool | None = None,
        time_wait: str | None = None,
        timestamps: bool | None = None,
        window_scaling: bool | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            ack_every=ack_every,
            congestion=congestion,
            delayed_ack=delayed_ack,
            dup_thresh=dup_thresh,
            ecn=ecn,
            eifel=eifel,
            fin=fin,
            handshake=handshake,
            hystart=hystart,
            initial_rto=initial_rto,
            initial_ssthresh=initial_ssthresh,
            initial_window=initial_window,
            initial_window_cap=initial_window_cap,
            limited_transmit=limited_transmit,
            loss_detection=loss_detection,
            max_rto=max_rto,
            min_rto=min_rto,
            mss=mss,
            nagle=nagle,
            prr=prr,
            receive_buffer=receive_buffer,
            sack=sack,
            slow_start_limit=slow_start_limit,
            subflows=subflows,
            tail_loss_probe=tail_loss_probe,
            time_wait=time_wait,
            timestamps=timestamps,
            window_scaling=window_scaling,
        )



class TcpEqif(Part):
    """The TCP-compatible EQIF: "a simple drop-tail queue for non-ECN traffic and a RED queue for ECN-capable traffic".

    Args:
        limit: Packets that may wait for one destination, at least 1. Default: "auto", 100 (section 8.5), or three
            windows (`window`) where that is more: at least one is needed for full rate (appendix B).
        red: Marking of ECN-capable packets.
        service: Service of the tunnels. Default: "auto", as `ordered` says.
        share: Share of the uplink.
        super_packet: Bytes up to which packets with data of one connection that wait behind each other count as
            one, for `limit` and `red`: super-packets of segmentation offload, which stacks hand over whole. Linux
            has 64 KB. Absent: each packet counts for itself.
    """

    _path = 'transport.eqds.eqif.tcp'
    _tag = ''
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'limit': ('limit', ''),
        'red': ('red', ''),
        'service': ('service', ''),
        'share': ('share', ''),
        'super_packet': ('super-packet', ''),
    }

    def __init__(
        self,
        *,
        limit: Literal["auto", "off"] | int | None = None,
        red: "Red" | Mapping[str, Any] | None = None,
        service: Literal["auto"] | Literal["ordered"] | Literal["unordered"] | Literal["unreliable"] | None = None,
        share: "Share" | Mapping[str, Any] | None = None,
        super_packet: str | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            limit=limit,
            red=red,
            service=service,
            share=share,
            super_packet=super_packet,
        )



class Team(Part):
    """Hosts that take part, split into groups that perform the same operation at the same time, independently of each other.

    Args:
        group_size: Hosts of each group, at least 2; divides the number of hosts. Absent: all are one group.
        hosts: Hosts that take part. Absent: all hosts.
        placement: Choice of the hosts that make a group.
    """

    _path = 'workload.collective.team'
    _tag = ''
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'group_size': ('group-size', ''),
        'hosts': ('hosts', ''),
        'placement': ('placement', ''),
    }

    def __init__(
        self,
        *,
        group_size: int | None = None,
        hosts: Sequence[int | str] | str | None = None,
        placement: Literal["adjacent"] | Literal["random"] | Literal["strided"] | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            group_size=group_size,
            hosts=hosts,
            placement=placement,
        )



class Timely(Part):
    """TIMELY. The defaults are the paper's (SIGCOMM'15), except for the start at line rate, which is the IRN paper's (section 4.1).

    Args:
        additive_increase: Delta: the step of additive increase. Default: 10Mbps.
        alpha: Alpha: the weight of the newest RTT difference, above 0, at most 1. Default: 0.875.
        beta: Beta: the weight of the gradient in decreases, above 0, at most 1. Default: 0.8.
        feedback: The transport of RTT samples to a sender whose loss recovery has no acknowledgements (RoCE with
            PFC). Default: free.
        hyper_after: N: steps without a positive gradient before hyperactive increase begins. Default: 5.
        hyper_factor: The steps of hyperactive increase, in deltas. Default: 5.
        initial_rate: The rate at which a flow starts. Default: "auto", the line rate. In the paper, flows start
            at a part of it that depends on the host's other flows.
        line_rate: The rate that no flow exceeds. Default: "auto", the hosts' line rate.
        loss_factor: The part of the rate that remains when a loss is found, above 0, at most 1: go-back-N
            "explicitly backing off on losses" (IRN, section 4.3, which does not say how). Default: 1, TIMELY has
            no such rule.
        min_rate: The lowest rate. Default: "auto", a hundredth of the line rate.
        min_rtt: D_minRTT: the unit of the RTT's gradient. Default: 20us.
        segment: The bytes that arrive per RTT sample. Default: 16KB.
        t_high: T_high: the RTT above which the rate only decreases. Default: 500us.
        t_low: T_low: the RTT below which the rate only increases. Default: 50us.
        update_interval: The least time between two steps. Default: "auto", which is D_minRTT; "off" takes a step
            with each segment.
    """

    _path = 'transport.congestion.timely'
    _tag = 'timely'
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'additive_increase': ('additive-increase', ''),
        'alpha': ('alpha', ''),
        'beta': ('beta', ''),
        'feedback': ('feedback', ''),
        'hyper_after': ('hyper-after', ''),
        'hyper_factor': ('hyper-factor', ''),
        'initial_rate': ('initial-rate', ''),
        'line_rate': ('line-rate', ''),
        'loss_factor': ('loss-factor', ''),
        'min_rate': ('min-rate', ''),
        'min_rtt': ('min-rtt', ''),
        'segment': ('segment', ''),
        't_high': ('t-high', ''),
        't_low': ('t-low', ''),
        'update_interval': ('update-interval', ''),
    }

    def __init__(
        self,
        *,
        additive_increase: str | None = None,
        alpha: float | None = None,
        beta: float | None = None,
        feedback: Literal["free"] | Literal["segment-acks"] | None = None,
        hyper_after: int | None = None,
        hyper_factor: int | None = None,
        initial_rate: str | None = None,
        line_rate: str | None = None,
        loss_factor: float | None = None,
        min_rate: str | None = None,
        min_rtt: str | None = None,
        segment: str | None = None,
        t_high: str | None = None,
        t_low: str | None = None,
        update_interval: str | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            additive_increase=additive_increase,
            alpha=alpha,
            beta=beta,
            feedback=feedback,
            hyper_after=hyper_after,
            hyper_factor=hyper_factor,
            initial_rate=initial_rate,
            line_rate=line_rate,
            loss_factor=loss_factor,
            min_rate=min_rate,
            min_rtt=min_rtt,
            segment=segment,
            t_high=t_high,
            t_low=t_low,
            update_interval=update_interval,
        )



class TopologyFile(Part):
    """Topology from a file of another simulator (ns-3 RDMA `topology.txt`, htsim `.topo`). Nodes of ns-3 are named by their numbers, those of htsim `h0`, `tor0`, `agg0`, `core0` and so on.

    Args:
        path: Path, relative to the scenario file. The dialect is detected.
    """

    _path = 'topology.file'
    _tag = 'file'
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'path': ('path', ''),
    }

    def __init__(
        self,
        path: str,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            path=path,
        )



class Trimming(Part):
    """Parameters of [`BufferConfig::Trimming`].

    Each output has a queue for each class of data and one for headers. Data that finds its queue full is cut to its
    headers (64 bytes), which go to the header queue with the class `header-class`, as do whole packets of at most that
    size. Transports whose control packets shall travel with the headers send them in that class, too (`nic.ack-class`).

    Args:
        flow_queues: Queues by flow for data, served by deficit round robin, as in `fair-queued`: `packets` bounds
            their sum, and the last packet of the longest queue is cut where that is full. Default: data is sent
            as it came.
        header_class: Traffic class of headers, 0 to 7; above that of data.
        headers: Bytes that the header queue holds; packets that find it full are dropped. "auto": twice as much
            as a data queue, as in htsim, and at least 64 KiB, which are 1,024 headers (about as many as in htsim
            and in NDP's switches, whose packets are larger); "off": without limit.
        headers_per_data: Headers that are sent before a waiting data packet is, at least 1. "auto": 10 (NDP
            section 3.1); htsim: 100,000. "off": headers always go first.
        packets: Full frames that a data queue holds, at least 1. Default: 8 (NDP section 3.1). EQDS's simulator:
            35.
        trim_last: Probability that the last packet of a full queue is cut, and not the arriving one. Default: one
            half (NDP section 3.1).
    """

    _path = 'switch.buffer.trimming'
    _tag = 'trimming'
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'flow_queues': ('flow-queues', ''),
        'header_class': ('header-class', ''),
        'headers': ('headers', ''),
        'headers_per_data': ('headers-per-data', ''),
        'packets': ('packets', ''),
        'trim_last': ('trim-last', ''),
    }

    def __init__(
        self,
        *,
        flow_queues: "FlowQueues" | Mapping[str, Any] | None = None,
        header_class: int | None = None,
        headers: str | None = None,
        headers_per_data: Literal["auto", "off"] | int | None = None,
        packets: int | None = None,
        trim_last: float | str | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            flow_queues=flow_queues,
            header_class=header_class,
            headers=headers,
            headers_per_data=headers_per_data,
            packets=packets,
            trim_last=trim_last,
        )



class Vegas(Part):
    """Vegas's thresholds, in segments.

    Args:
        alpha: Segments in queues below which the window grows. Default: 2, as in Linux; the paper has 1 to 2.
        beta: Segments in queues above which the window shrinks. Default: 4, as in Linux; the paper has 3 to 4.
        gamma: Segments in queues above which slow start ends. Default: 1.
    """

    _path = 'beside.tcp.congestion.vegas'
    _tag = 'vegas'
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'alpha': ('alpha', ''),
        'beta': ('beta', ''),
        'gamma': ('gamma', ''),
    }

    def __init__(
        self,
        *,
        alpha: int | None = None,
        beta: int | None = None,
        gamma: int | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            alpha=alpha,
            beta=beta,
            gamma=gamma,
        )



class Verbs(Part):
    """Applications that use RDMA verbs over queue pairs that are connected from the start. Each queue pair has `queue-depth` requests outstanding, or requests are posted at random if a load is given. Messages are counted at the requester: from the application's call to its completion.

    Args:
        end_to_end_credits: End-to-end credits (InfiniBand's; IRN, section 5.4): acknowledgements advertise how
            many receive requests wait, and Sends and Writes with immediates wait for one, so that no receiver is
            found not ready. Default: false, as in NICs for Ethernet: a receiver without a receive request asks to
            wait (an RNR NAK).
        hosts: Hosts that take part, where `pairs` does not name them. Absent: all hosts.
        jitter: Largest random delay of each connection's beginning, so that connections do not act in step; not
            with a load.
        load: Payload that each requester moves, in either direction, as a fraction of its link's rate: then
            messages come at exponentially distributed intervals, and wait where a queue is full. Absent: each
            message follows one that is done.
        messages: Number of messages of each queue pair, at least 1. Absent: without limit.
        operations: Operations: weights, such as { write = 3, read = 1 }, or in turn, such as ["write", "send"].
            There are `write`, `write-immediate` (completes a receive request, too), `read`, `send`, `send-
            immediate` (with four bytes of immediate data), and on words of 8 bytes `fetch-add` and `compare-
            swap`.
        pairs: Hosts that have connections. The requester is named first.
        queue_depth: Requests that each queue pair may have outstanding, 1 to 32768; without a load it always has
            as many.
        queue_pairs: Queue pairs of each pair of hosts, at least 1.
        reads: Number of Reads and Atomics that a queue pair may have under way, 1 to 128.
        receives: Number of receive requests that wait at each queue pair, 1 to 32768: with fewer than the depth,
            Sends may find none and are asked to wait. Absent: as many as the depth.
        retries: Number of retries after timeouts before a queue pair fails, 0 to 7.
        sizes: Sizes of messages; Atomics have 8 bytes.
        start: Time at which the first messages are posted.
        think: Time that an application waits from the end of a message to the next; not with a load.
        timeout: Time that a queue pair waits for an answer, rounded up to 4.096 us times a power of two. With go-
            back-N it then sends again; "auto" is the series' retransmission timeout and what its link takes for
            all that the queue holds in the mean. Other schemes have retransmission timeouts of their own, and the
            queue pair gives up by this one; "auto" is 67 ms. "off": for ever.
    """

    _path = 'workload.verbs'
    _tag = 'verbs'
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'end_to_end_credits': ('end-to-end-credits', ''),
        'hosts': ('hosts', ''),
        'jitter': ('jitter', ''),
        'load': ('load', ''),
        'messages': ('messages', ''),
        'operations': ('operations', ''),
        'pairs': ('pairs', ''),
        'queue_depth': ('queue-depth', ''),
        'queue_pairs': ('queue-pairs', ''),
        'reads': ('reads', ''),
        'receives': ('receives', ''),
        'retries': ('retries', ''),
        'sizes': ('sizes', 'sizes'),
        'start': ('start', ''),
        'think': ('think', ''),
        'timeout': ('timeout', ''),
    }

    def __init__(
        self,
        sizes: Mapping[str, Any] | Sequence[str] | str,
        *,
        end_to_end_credits: bool | None = None,
        hosts: Sequence[int | str] | str | None = None,
        jitter: str | None = None,
        load: float | str | None = None,
        messages: int | None = None,
        operations: Mapping[str, Any] | Sequence[Literal["compare-swap"] | Literal["fetch-add"] | Literal["read"] | Literal["send"] | Literal["send-immediate"] | Literal["write"] | Literal["write-immediate"]] | None = None,
        pairs: Literal["permutation", "all-to-all"] | Sequence[Sequence[int | str]] | None = None,
        queue_depth: int | None = None,
        queue_pairs: int | None = None,
        reads: int | None = None,
        receives: int | None = None,
        retries: int | None = None,
        start: str | None = None,
        think: str | None = None,
        timeout: str | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            sizes=sizes,
            end_to_end_credits=end_to_end_credits,
            hosts=hosts,
            jitter=jitter,
            load=load,
            messages=messages,
            operations=operations,
            pairs=pairs,
            queue_depth=queue_depth,
            queue_pairs=queue_pairs,
            reads=reads,
            receives=receives,
            retries=retries,
            start=start,
            think=think,
            timeout=timeout,
        )



class Window(Part):
    """Window of simulated time.

    Args:
        from_: First instant of the window, from the beginning of the run.
        to: First instant after the window. Absent: the window has no end.
    """

    _path = 'measure.window'
    _tag = 'window'
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'from_': ('from', ''),
        'to': ('to', ''),
    }

    def __init__(
        self,
        *,
        from_: str | None = None,
        to: str | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            from_=from_,
            to=to,
        )



class StudyKeys(Part):
    """Study: one fabric, its traffic, and the series that are compared on it.

    Quantities are texts with a unit ("40Gbps", "2us", "240KB"). Keys that are left out have the defaults shown. A
    setting of "auto" is derived from the rest of the scenario; the resolved scenario in the results folder shows the
    derived values.

    Args:
        auto: Paths from which the windows, round-trip times and timeouts of `transport` at "auto" are derived.
            Default: per-path.
        beside: Workloads that use TCP, whatever the others use: a network that RDMA shares.
        case: Conditions under which all series are compared, one after the other: several loads, for example.
            Each case is this scenario with some values replaced. Without any, there is one condition.
        description: Description of the study, in as many lines as it takes.
        failures: Links that fail.
        loss: Packets that links lose.
        measure: Flows that count for results.
        nic: NICs of the hosts, and how packets look on the wire.
        sample: Interval at which queue depths and pauses of all ports are recorded. "auto": every other base
            round-trip time, but not much more than 2,000 times while flows start; "off": never.
        seeds: Each series runs once per seed. A number n means the seeds 1 to n.
        series: Series to compare: each is this scenario with some values replaced. Without any, the scenario
            itself is the only one.
        smoke: Values that `selvedge check --smoke` puts in place, by their dotted keys, so that a figure can be
            tried in seconds: fewer flows, fewer seeds.
        stop: End of a run. Without: when all flows are done.
        sweep: Grid of values at whose points all series are compared, in place of cases.
        switch: Switches of the network.
        title: Title of the study, in one line.
        topology: Network of the study.
        transport: Loss recovery and congestion control, or TCP.
        workload: Traffic of the study.
    """

    _path = ''
    _tag = ''
    _keys: ClassVar[dict[str, tuple[str, str]]] = {
        'auto': ('auto', ''),
        'beside': ('beside', ''),
        'case': ('case', ''),
        'description': ('description', ''),
        'failures': ('failures', ''),
        'loss': ('loss', ''),
        'measure': ('measure', 'kind'),
        'nic': ('nic', ''),
        'sample': ('sample', ''),
        'seeds': ('seeds', ''),
        'series': ('series', ''),
        'smoke': ('smoke', ''),
        'stop': ('stop', ''),
        'sweep': ('sweep', ''),
        'switch': ('switch', ''),
        'title': ('title', ''),
        'topology': ('topology', 'kind'),
        'transport': ('transport', 'kind'),
        'workload': ('workload', 'kinds'),
    }

    def __init__(
        self,
        topology: "Chain" | "Dumbbell" | "Explicit" | "FatTree" | "LeafSpine" | "TopologyFile" | Mapping[str, Any],
        workload: "AllToAll" | "ClosedLoop" | "Collective" | "FlowFile" | "GoalFile" | "Incast" | "MixtureOfExperts" | "Permutation" | "Pipeline" | "Poisson" | "Verbs" | Mapping[str, Any] | Sequence["AllToAll" | "ClosedLoop" | "Collective" | "FlowFile" | "GoalFile" | "Incast" | "MixtureOfExperts" | "Permutation" | "Pipeline" | "Poisson" | "Verbs"],
        *,
        title: str | None = None,
        auto: Literal["longest-path"] | Literal["per-path"] | None = None,
        beside: "Beside" | Mapping[str, Any] | None = None,
        case: Sequence["Case" | Mapping[str, Any]] | None = None,
        description: str | None = None,
        failures: Sequence["LinkFailure" | Mapping[str, Any]] | None = None,
        loss: Sequence["Loss" | Mapping[str, Any]] | None = None,
        measure: "Window" | Mapping[str, Any] | float | str | None = None,
        nic: "Nic" | Mapping[str, Any] | None = None,
        sample: str | None = None,
        seeds: Sequence[int] | int | None = None,
        series: Sequence[Mapping[str, Any] | str] | None = None,
        smoke: Mapping[str, Any] | None = None,
        stop: "Stop" | Mapping[str, Any] | None = None,
        sweep: "Sweep" | Mapping[str, Any] | None = None,
        switch: "Switch" | Mapping[str, Any] | None = None,
        transport: "Eqds" | "Homa" | "Ndp" | "Tcp" | Mapping[str, Any] | None = None,
    ) -> None:
        """Take the values of the keys; absent ones have their defaults."""
        super().__init__(
            topology=topology,
            workload=workload,
            title=title,
            auto=auto,
            beside=beside,
            case=case,
            description=description,
            failures=failures,
            loss=loss,
            measure=measure,
            nic=nic,
            sample=sample,
            seeds=seeds,
            series=series,
            smoke=smoke,
            stop=stop,
            sweep=sweep,
            switch=switch,
            transport=transport,
        )
