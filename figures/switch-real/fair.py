#!/usr/bin/env python3
"""A fast and a slow sender at one output: what each of them loses and gets, in the simulator or in a laboratory.

    fair.py simulated KEY=VALUE   `selvedge run` with the switch of unequal.toml, and this buffer
    fair.py real KEY=VALUE        `selvedge lab` with the same switch; paced.py sends from h0 and h1
"""

import json
import os
import subprocess
import sys
import tempfile

import captures

HERE = os.path.dirname(os.path.abspath(__file__))
SELVEDGE = os.environ.get("SELVEDGE", "selvedge")
SMOKE = os.environ.get("SELVEDGE_SMOKE") == "1"
RUN = int(os.environ.get("SELVEDGE_RUN") or 0)
FAST, SLOW, OUTPUT = "leaf0:h0", "leaf0:h1", "leaf0:h2"
# Seconds until queues are full, and seconds that are measured: those of paced.py, which ends its senders.
SKIP, SECONDS = (1.0, 1.0) if SMOKE else (1.5, 5.0)


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


def run(words):
    """Runs a command; ends with its message if it fails."""
    done = subprocess.run(words, capture_output=True, text=True, cwd=HERE)
    if done.returncode != 0:
        print(f"`{' '.join(words)}` failed: {done.stderr.strip()}", file=sys.stderr)
        sys.exit(2)


def main(world, buffer):
    with tempfile.TemporaryDirectory() as folder:
        if world == "real":
            program = [sys.executable, os.path.join(HERE, "paced.py"), "send"]
            run([SELVEDGE, "lab", "unequal.toml", "--set", buffer, "--name", "svf", "--trace-dir", folder, "--", *program])
            capture = os.path.join(folder, "lab.pcapng")
        else:
            out = os.path.join(folder, "results")
            sets = [buffer, f"seeds=[{RUN + 1}]", f"stop.time='{SKIP + SECONDS + 0.1}s'"]
            changes = [word for change in sets for word in ("--set", change)]
            run([SELVEDGE, "run", "unequal.toml", "-q", *changes, "--trace", "port=leaf0", "--trace-dir", folder, "--out", out])
            capture = next(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".pcapng"))
        print(json.dumps({"figure": "senders", **shares(capture)}))


if len(sys.argv) == 3 and sys.argv[1] in ("real", "simulated"):
    main(*sys.argv[1:])
else:
    print(__doc__, file=sys.stderr)
    sys.exit(2)
