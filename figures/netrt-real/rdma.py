#!/usr/bin/env python3
"""Programs of perftest between two hosts of `selvedge lab`, with the switches' counters; lines of JSON."""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

SELVEDGE = os.environ.get("SELVEDGE") or shutil.which("selvedge")
SMOKE = os.environ.get("SELVEDGE_SMOKE") == "1"
RUN = int(os.environ.get("SELVEDGE_RUN") or 0)
ADDRESS = "10.77.0.1"
# A switch for each of two hosts. The link between the switches loses packets with data, copies included.
RACK = """
seeds = [{seed}]
loss = [{{ link = "left - right", packets = "data", model = {{ random = {{ rate = "{loss}" }} }} }}]

[topology.dumbbell]
left = 1
right = 1
host-link = {{ rate = "{rate}", delay = "1us" }}
bottleneck = {{ rate = "{rate}", delay = "{delay}us" }}

[switch.buffer.input-queued]
per-port = "1MB"

[switch.netrt]
enabled = {netrt}
pool = "128KB"
buffer = "128KB"
idle = "100ms"
"""
# Environment of a NIC as sold: go-back-N on the standard wire. The others need the NIC that this project makes.
NICS = {
    "go-back-n": {"SELVEDGE_RECOVERY": "go-back-n", "SELVEDGE_WIRE": "standard"},
    "melo": {"SELVEDGE_RECOVERY": "melo"},
    "irn": {"SELVEDGE_RECOVERY": "irn"},
}


def fail(message):
    """Ends with a message."""
    print(f"{os.path.basename(sys.argv[0])}: {message}", file=sys.stderr)
    sys.exit(1)


def perftest(program, hosts, nic, words):
    """Runs a program of perftest at both hosts; returns the numbers of the client's last line."""
    command = [program, "-d", "sv_eth0", "--report_gbits", *words]
    environment = [f"{name}={value}" for name, value in NICS[nic].items()]

    def start(host, *more):
        within = ["ip", "netns", "exec", host, "env", *environment, SELVEDGE, "verbs", "--", *command, *more]
        return subprocess.Popen(within, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    server = start(hosts[0])
    # The client gives up if nobody listens yet.
    listening = ["ip", "netns", "exec", hosts[0], "ss", "-Hltn", "sport = :18515"]
    for _ in range(200):
        if subprocess.run(listening, capture_output=True, text=True, check=False).stdout or server.poll() is not None:
            break
        time.sleep(0.02)
    client = start(hosts[1], ADDRESS)
    said, _ = client.communicate()
    if client.returncode != 0:
        server.kill()
        fail(f"{program} has failed at its client:\n{said}\nand at its server:\n{server.communicate()[0]}")
    server.communicate()
    rows = [line.split() for line in said.splitlines() if line.strip()[:1].isdigit()]
    return [float(word) for word in rows[-1]]


def within(hosts, args):
    """Measures in the laboratory; prints a list of results as one line."""
    # The timeout of a queue pair is 4.096 us doubled so many times.
    common = ["-m", "1024", "-u", str(args.timeout)]
    if args.operation == "send":
        # Programs sleep until something completes: hosts and switches share processors. Writes and Reads must poll.
        common.append("-e")
    results = []
    if args.measure == "bandwidth":
        # Half a megabyte under way: what a NIC has handed to the kernel waits for its link, while timers run.
        words = ["-s", "65536", "-n", str(50 if SMOKE else args.messages or 1_000), "-t", "8", *common]
        _, _, _, gbps, _ = perftest(f"ib_{args.operation}_bw", hosts, args.nic, words)
        results.append({"figure": "bandwidth", "gbps": gbps})
    else:
        for size in args.sizes:
            # Ping and pong: of each round trip, half is the time of one message.
            messages = 5 if SMOKE else args.messages or (200 if size < 1_000_000 else 50)
            words = ["-s", str(size), "-n", str(messages), *common]
            row = perftest(f"ib_{args.operation}_lat", hosts, args.nic, words)
            _, _, least, _, typical, mean, _, p99, _ = row
            names = ("min_us", "p50_us", "mean_us", "p99_us")
            values = dict(zip(names, (least, typical, mean, p99), strict=True))
            results.append({"figure": "messages", "size": size, **values})
    print(json.dumps(results), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("measure", choices=["bandwidth", "messages"])
    parser.add_argument("--nic", choices=NICS, default="go-back-n", help="recovery of the hosts' NICs")
    parser.add_argument("--netrt", action="store_true", help="switches repair")
    parser.add_argument("--operation", choices=["send", "write", "read"], default="send")
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000], help="bytes of messages")
    parser.add_argument("--messages", type=int, help="default: 200, of those of 1 MB 50; 1000 to measure bandwidth")
    parser.add_argument("--timeout", type=int, default=13, help="of queue pairs: 4.096us doubled so many times")
    parser.add_argument("--loss", default="0%", help="of packets with data, in each direction")
    parser.add_argument("--rtt", type=float, default=50, help="between the switches, in microseconds")
    parser.add_argument("--rate", default="1Gbps", help="of the links")
    parser.add_argument("--within", nargs=2, metavar="HOST", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.within:
        return within(args.within, args)
    if SELVEDGE is None:
        fail("no selvedge on the path; the environment variable SELVEDGE says where it is")
    name = f"svr{os.getpid()}"
    hosts = [f"{name}-h{number}" for number in range(2)]
    netrt = "true" if args.netrt else "false"
    values = {"seed": RUN + 1, "loss": args.loss, "rate": args.rate, "delay": args.rtt / 2, "netrt": netrt}
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as rack:
        rack.write(RACK.format(**values))
        rack.flush()
        lab = [SELVEDGE, "lab", rack.name, "--json", "--name", name]
        inner = [sys.executable, os.path.abspath(__file__), *sys.argv[1:], "--within", *hosts]
        done = subprocess.run([*lab, "--", *inner], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        fail(f"the laboratory has failed, see above: {' '.join(lab)}")
    results, _, counts = done.stdout.partition("\n")
    counts = json.loads(counts)
    # Switches of all results: the receiver's is the left one. Without NetRT they count nothing of it.
    places = counts["switches"]["places"]
    data, receiver, sender = (places.get(place, {}) for place in ("data", "left", "right"))

    def both(counter):
        return receiver.get(counter, 0) + sender.get(counter, 0)

    of_all = {
        "lost": data.get("link-loss", 0),
        "requests": both("requests_sent"),
        "copies": both("copies_sent"),
        "unfulfilled": both("unfulfilled"),
        "given_up": both("given_up"),
        "restarts": both("restarts"),
        "full": data.get("buffer-full", 0) + counts["switches"]["counts"]["refused"],
    }
    for counter in ("pool_peak", "pool_mean"):
        of_all[counter] = sender.get(counter, 0)
    for counter in ("buffer_peak", "buffer_mean"):
        of_all[counter] = receiver.get(counter, 0)
    for result in json.loads(results):
        print(json.dumps(result))
    print(json.dumps({"figure": "switches", **of_all}))


main()
