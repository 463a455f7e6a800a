#!/usr/bin/env python3
"""Shares of a link between a TCP flow with Cubic and one with another congestion control, from two hosts (figure 18)."""

import argparse

import lab

PORT = 5500


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--beside", default="bbr", help="congestion control of the second flow")
    parser.add_argument("--seconds", type=float, default=1 if lab.SMOKE else 20)
    args = parser.parse_args()
    lab.require("ip")
    receiver, *senders = lab.hosts(3)[:3]
    flows = list(zip(senders, ["cubic", args.beside], strict=True))
    # A flow that begins later has another share at first. Which does, changes from run to run.
    for host, congestion in flows if lab.RUN % 2 == 0 else reversed(flows):
        host.start(lab.stream_to, receiver.address, PORT, congestion, host.number)
    rates = receiver.call(lab.receive_streams, PORT, 2, None, 3, args.seconds)
    total = sum(rates.values())
    lab.emit(
        "controls", seconds=args.seconds, beside=args.beside, total_mbps=total / 1e6,
        share=rates[senders[1].number] / total if total else 0.0,
    )  # fmt: skip


main()
