#!/usr/bin/env python3
"""Shares of a link between 4 TCP flows and a UDP sender at line rate, each from a host of its own (figure 17)."""

import argparse
import socket
import time

import lab

TCP, UDP = 5500, 5501


def flood(address, rate, payload):
    """Sends datagrams at a rate of bits per second, for ever."""
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.connect((address, UDP))
    block = bytes(payload)
    interval = payload * 8 / rate
    next_at = time.monotonic()
    while True:
        now = time.monotonic()
        if now < next_at:
            time.sleep(next_at - now)
        # Time that is lost is not made up beyond a millisecond.
        next_at = max(next_at, now - 0.001) + interval
        try:
            sender.send(block)
        except OSError:
            pass  # a full queue, or nobody who listens yet


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tcp", type=int, default=4, help="hosts with a TCP flow")
    parser.add_argument("--udp-rate", type=float, help="bits per second; default: that of the links, or 1 Gb/s")
    parser.add_argument("--payload", type=int, default=1200, help="bytes of a datagram")
    parser.add_argument("--seconds", type=float, default=1 if lab.SMOKE else 10)
    parser.add_argument("--congestion", default="cubic")
    args = parser.parse_args()
    lab.require("ip")
    receiver, *senders = lab.hosts(args.tcp + 2)[: args.tcp + 2]
    rate = args.udp_rate or lab.number("RATE", 10**9)
    for host in senders[: args.tcp]:
        host.start(lab.stream_to, receiver.address, TCP, args.congestion, host.number)
    senders[args.tcp].start(flood, receiver.address, rate, args.payload)
    rates = receiver.call(lab.receive_streams, TCP, args.tcp, UDP, 3, args.seconds)
    total = sum(rates.values())
    udp = rates.pop(0)
    lab.emit(
        "udp-flood", seconds=args.seconds, offered_udp_mbps=rate / 1e6, total_mbps=total / 1e6,
        udp_share=udp / total if total else 0.0, tcp_shares=[round(rate / total, 4) for rate in rates.values()],
        jain=lab.jain([udp, *rates.values()]),
    )  # fmt: skip


main()
