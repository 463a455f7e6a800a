#!/usr/bin/env python3
"""A fast and a slow sender at one output: what each of them loses and gets, in the simulator or in a laboratory.

    fair.py simulated KEY=VALUE   `selvedge run` with the switch of unequal.toml, and this buffer
    fair.py real KEY=VALUE        `selvedge lab` with the same switch; paced.py sends from h0 and h1
"""

import json
import sys
import tempfile

import captures
import worlds

FAST, SLOW, OUTPUT = "leaf0:h0", "leaf0:h1", "leaf0:h2"
# Seconds until queues are full, and seconds that are measured: those of paced.py, which ends its senders.
SKIP, SECONDS = (1.0, 1.0) if worlds.SMOKE else (1.5, 5.0)


def source(frame):
    """Returns the source address of an IPv4 packet."""
    return frame[26:30]


def shares(path):
    """Returns what arrived from each sender and what left, from SKIP seconds after the first packet on."""
    arrived, left, names, begin = {FAST: 0, SLOW: 0}, {FAST: 0, SLOW: 0}, {}, None
    for at, port, is_inbound, length, _, frame in captures.packets(path):
        if length <= 200:
            continue
        begin = at if begin is None else begin
        is_measured = begin + SKIP <= at < begin + SKIP + SECONDS
        if is_inbound and port in arrived:
            names[source(frame)] = port
            arrived[port] += is_measured
        elif not is_inbound and port == OUTPUT:
            left[names[source(frame)]] += is_measured
    if not (all(arrived.values()) and all(left.values())):
        raise SystemExit(f"{path}: {arrived} arrived and {left} left in {SECONDS} s")
    return {
        "fast_loss": 1 - left[FAST] / arrived[FAST],
        "slow_loss": 1 - left[SLOW] / arrived[SLOW],
        "slow_share": left[SLOW] / sum(left.values()),
    }


if len(sys.argv) == 3 and sys.argv[1] in ("real", "simulated"):
    with tempfile.TemporaryDirectory() as folder:
        capture = worlds.record(sys.argv[1], "unequal.toml", sys.argv[2], SKIP + SECONDS + 0.1, folder)
        print(json.dumps({"figure": "senders", **shares(capture)}))
else:
    print(__doc__, file=sys.stderr)
    sys.exit(2)
