#!/usr/bin/env python3
"""Two senders at line rate into one slower output: its queue, drops and marks, in the simulator or in a laboratory.

    paced.py simulated KEY=VALUE   `selvedge run` with the switches of rack.toml, and this buffer
    paced.py real KEY=VALUE        `selvedge lab` with the same switches, between namespaces where this program sends
    paced.py send                  the senders, in the laboratory
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time

import captures
import worlds

INPUTS, OUTPUT = ("leaf0:h0", "leaf0:h1"), "leaf0:spine0"
# Seconds until queues are full, and seconds that are measured.
SKIP, SECONDS = (1.0, 1.0) if worlds.SMOKE else (1.5, 5.0)
# Payload of a datagram whose frame is as long as that of the simulator's packets.
PAYLOAD = 1_040
PORT = 7_000
# ECN: capable of transport.
ECT = 2


def send():
    """Sends from both hosts until they are told to end."""
    address = os.environ["SELVEDGE_LAB_ADDRESS_h2"]
    sender = ("import socket,sys\ns=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)\n"
              f"s.setsockopt(socket.IPPROTO_IP,socket.IP_TOS,{ECT})\n"
              f"while True: s.sendto(bytes({PAYLOAD}),('{address}',{PORT}))")
    names = [os.environ[f"SELVEDGE_LAB_NS_{host}"] for host in ("h0", "h1")]
    running = [subprocess.Popen(["ip", "netns", "exec", name, sys.executable, "-c", sender]) for name in names]
    time.sleep(SKIP + SECONDS + 0.3)
    for process in running:
        process.kill()
        process.wait()


if sys.argv[1:] == ["send"]:
    send()
elif len(sys.argv) == 3 and sys.argv[1] in ("real", "simulated"):
    with tempfile.TemporaryDirectory() as folder:
        capture = worlds.record(sys.argv[1], "rack.toml", sys.argv[2], SKIP + SECONDS + 0.1, folder)
        print(json.dumps({"figure": "output", **captures.at_output(capture, INPUTS, OUTPUT, SKIP, SECONDS)}))
else:
    print(__doc__, file=sys.stderr)
    sys.exit(2)
