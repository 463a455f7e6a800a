#!/usr/bin/env python3
"""Round trips of ping: the first one to a host, idle, and under load of TCP flows to the same host (figures 10, 16)."""

import argparse
import re
import time

import lab

PORT = 5300


def pings(sender, receiver, count, interval):
    """Returns the round-trip times of answered pings in seconds, in their order."""
    words = ["ping", "-n", "-c", str(count), "-i", str(interval), "-W", "2", receiver.address]
    said = sender.command("sh", "-c", " ".join(words) + " || true", timeout=count * (interval + 0.01) + 60)
    return [float(ms) / 1e3 for ms in re.findall(r"time=([0-9.]+) ms", said)]


def report(figure, times, count, **values):
    """Prints the statistics of round trips."""
    if not times:
        lab.emit(figure, sent=count, n=0, lost=count, **values)
        return
    lab.emit(figure, sent=count, lost=count - len(times), **lab.spread(times), **values)


def first(sender, receivers, figure):
    """Measures the first ping to each host, against the two that follow."""
    firsts, extra = [], []
    for receiver in receivers:
        times = pings(sender, receiver, 3, 0.2)
        if len(times) == 3:
            firsts.append(times[0])
            extra.append(times[0] - min(times[1:]))
    if firsts:
        lab.emit(figure, **lab.spread(firsts), extra_p50_us=lab.quantile(extra, 0.5) * 1e6)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=50 if lab.SMOKE else 1000, help="pings")
    parser.add_argument("--interval", type=float, default=0.01, help="seconds between pings")
    parser.add_argument("--idle", type=float, default=1 if lab.SMOKE else 5, help="seconds of silence before a second round of first pings")
    parser.add_argument("--flows", type=int, default=1, help="TCP flows of each loading host")
    parser.add_argument("--congestion", default="cubic")
    args = parser.parse_args()
    lab.require("ip", "ping")
    sender, receiver, *loading = lab.hosts(2)
    others = [receiver, *loading][: 3 if lab.SMOKE else None]
    first(sender, others, "latency-first")
    if args.idle:
        time.sleep(args.idle)
        first(sender, others, "latency-again")
    idle = pings(sender, receiver, args.count, args.interval)
    report("latency-idle", idle, args.count)
    if not loading:
        lab.fail("no load: with 3 or more hosts, host 3 and those after it load the link of host 2")
    flows = len(loading) * args.flows
    seconds = args.count * args.interval + 3
    sink = receiver.start(lab.receive_streams, PORT, flows, None, 0, seconds + 5)
    for host in loading:
        for _ in range(args.flows):
            host.start(lab.stream_to, receiver.address, PORT, args.congestion, host.number)
    time.sleep(2)
    loaded = pings(sender, receiver, args.count, args.interval)
    over = {"p50_over_idle_us": (lab.quantile(loaded, 0.5) - lab.quantile(idle, 0.5)) * 1e6} if loaded and idle else {}
    report("latency-load", loaded, args.count, flows=flows, **over)
    sink.terminate()


main()
