#!/usr/bin/env python3
"""A permutation over equal-cost paths: each host sends TCP to one of another leaf switch (figures 7, 9, 20)."""

import argparse
import random

import lab

PORT = 5600


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flows", type=int, default=1, help="TCP flows of each host")
    parser.add_argument("--runs", type=int, default=1, help="permutations")
    parser.add_argument("--seconds", type=float, default=1 if lab.SMOKE else 5)
    parser.add_argument("--seed", type=int, default=lab.RUN)
    parser.add_argument("--congestion", default="cubic")
    args = parser.parse_args()
    lab.require("ip")
    hosts, paths = lab.hosts(4), lab.number("PATHS", 1)
    if paths < 2:
        lab.fail("one path has nothing to choose from: selvedge eqds lab --paths 4 ...")
    # The hosts of a leaf: as many as there are paths, or half of all.
    leaf = min(paths, (len(hosts) + 1) // 2)
    chance = random.Random(args.seed)
    for _ in range(args.runs):
        # Hosts of a leaf stand together: a turn by as many takes each to another leaf, if all leaves are full.
        leaves = [hosts[at : at + leaf] for at in range(0, len(hosts), leaf)]
        chance.shuffle(leaves)
        order = [host for members in leaves for host in chance.sample(members, len(members))]
        results = []
        for source, target in zip(order, order[leaf:] + order[:leaf]):
            results.append(target.begin(lab.receive_streams, PORT, args.flows, None, 2, args.seconds))
            for _ in range(args.flows):
                source.start(lab.stream_to, target.address, PORT, args.congestion, source.number)
        rates = [sum(result().values()) for result in results]
        link = lab.number("RATE", 0)
        use = {"share_of_links": sum(rates) / (link * len(hosts))} if link else {}
        lab.emit(
            "ecmp", flows=args.flows, gbps=sum(rates) / 1e9, least_mbps=min(rates) / 1e6,
            p50_mbps=lab.quantile(rates, 0.5) / 1e6, most_mbps=max(rates) / 1e6, jain=lab.jain(rates), **use,
        )  # fmt: skip


main()
