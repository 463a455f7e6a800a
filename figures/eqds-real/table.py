#!/usr/bin/env python3
"""Prints a table in Markdown of results of run.sh: each number with tunnels, without, and their ratio."""

import json
import sys

# What identifies a measurement, beside its figure; what is shown of it, with a factor and a unit.
KEYS = ["hosts", "paths", "inside", "offloads", "flows", "senders", "bytes"]
SHOWN = {
    "throughput": [("gbps", 1, "Gb/s")],
    "latency-first": [("p50_us", 1, "us"), ("extra_p50_us", 1, "us")],
    "latency-idle": [("p50_us", 1, "us"), ("p99_us", 1, "us")],
    "latency-load": [("p50_us", 1, "us"), ("p99_us", 1, "us")],
    "incast": [("p50_us", 1e-3, "ms"), ("p99_us", 1e-3, "ms"), ("p999_us", 1e-3, "ms"), ("round_p50_us", 1e-3, "ms")],
    "incast-streams": [("jain", 1, ""), ("gbps", 1e3, "Mb/s")],
    "udp-flood": [("udp_share", 1, ""), ("total_mbps", 1, "Mb/s"), ("jain", 1, "")],
    "ecmp": [("gbps", 1e3, "Mb/s"), ("least_mbps", 1, "Mb/s"), ("jain", 1, "")],
}
PAPER = {
    ("throughput", "on", 1500): "0.68",
    ("throughput", "on", 9000): "0.92",
    ("throughput", "off", 1500): "0.29",
    ("throughput", "off", 9000): "0.70",
    ("latency-first", "extra_p50_us"): "+20 us",
    ("latency-load", "p50_us"): "+36 us (10), +21 us (16)",
    ("incast-streams", "jain"): "1 (14)",
    ("udp-flood", "udp_share"): "0.2 (17)",
    ("ecmp", "gbps"): "1.6 to 1.8 times (7)",
}


def short(number):
    """Returns a number with three digits, or all before the point."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: table.py FILE")
    rows = {}
    with open(sys.argv[1], encoding="utf-8") as file:
        for line in file:
            result = json.loads(line)
            # Throughput is compared at one MTU inside; the rest in one network.
            if result["figure"] == "throughput":
                result["inside"] = result["mtu"] - 84 * result["tunnel"]
            key = (result["figure"], *((name, result[name]) for name in KEYS if name in result))
            for name, factor, unit in SHOWN.get(result["figure"], []):
                if name in result:
                    ways = rows.setdefault((key, name, unit), {})
                    # Of several runs, as of ecmp, the mean.
                    ways.setdefault(result["tunnel"], []).append(result[name] * factor)
    print("| measurement | | with | without | ratio | paper |")
    print("|---|---|---|---|---|---|")
    for (key, name, unit), ways in rows.items():
        figure, *values = key
        of = dict(values)
        numbers = [sum(ways[way]) / len(ways[way]) if way in ways else None for way in (True, False)]
        ratio = f"{numbers[0] / numbers[1]:.2f}" if None not in numbers and numbers[1] else "-"
        texts = ["-" if number is None else f"{short(number)} {unit}".strip() for number in numbers]
        paper = PAPER.get((figure, of.get("offloads"), of.get("inside"))) or PAPER.get((figure, name), "")
        what = ", ".join(f"{name} {value}" for name, value in values if (name, value) != ("paths", 1))
        print(f"| {figure}: {what} | {name} | {texts[0]} | {texts[1]} | {ratio} | {paper} |")


main()
