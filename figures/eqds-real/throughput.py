#!/usr/bin/env python3
"""Throughput of iperf3 from host 1 to host 2, with 1, 4 and 16 flows, offloads on and off (paper, figure 25)."""

import argparse
import json
import subprocess
import time

import lab

ON = ["tso", "on", "gso", "on", "gro", "on"]
OFF = ["tso", "off", "gso", "off", "gro", "off"]


def set_offloads(hosts, words):
    """Switches the offloads of all devices of the hosts."""
    for host in hosts:
        for device in ["eth0"] if lab.WITHOUT else ["eth0", "eqds0"]:
            host.command("ethtool", "-K", device, *words)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flows", type=int, nargs="+", default=[1] if lab.SMOKE else [1, 4, 16])
    parser.add_argument("--seconds", type=int, default=1 if lab.SMOKE else 5)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--congestion", default="cubic")
    parser.add_argument("--offloads", choices=["on", "off", "both"], default="both")
    args = parser.parse_args()
    lab.require("ip", "iperf3", "ethtool")
    sender, receiver = lab.hosts(2)[:2]
    server = receiver.background("iperf3", "--server")
    time.sleep(0.5)
    for offloads in ["on", "off"] if args.offloads == "both" else [args.offloads]:
        set_offloads([sender, receiver], ON if offloads == "on" else OFF)
        for flows in args.flows:
            rates, resent, cpu = [], 0, []
            for _ in range(args.runs):
                said = sender.command(
                    "iperf3", "--client", receiver.address, "--time", str(args.seconds), "--parallel", str(flows),
                    "--congestion", args.congestion, "--omit", "1", "--json", timeout=args.seconds + 30,
                )  # fmt: skip
                end = json.loads(said)["end"]
                rates.append(end["sum_received"]["bits_per_second"] / 1e9)
                resent += end["sum_sent"].get("retransmits", 0)
                cpu.append(end["cpu_utilization_percent"]["host_total"])
            lab.emit(
                "throughput", offloads=offloads, flows=flows, runs=args.runs, gbps=lab.quantile(rates, 0.5),
                gbps_min=min(rates), gbps_max=max(rates), tcp_retransmissions=resent, sender_cpu=lab.quantile(cpu, 0.5),
            )  # fmt: skip
    set_offloads([sender, receiver], ON)
    server.terminate()
    try:
        server.wait(2)
    except subprocess.TimeoutExpired:
        server.kill()


main()
