#!/usr/bin/env python3
"""Incast: host 1 asks k hosts at once for answers of one size, over connections that stay open (figures 14, 15).

Two results: completion times of answers, and with endless answers the fairness between the senders (Jain's index).
"""

import argparse
import select
import time

import lab

PORT = 5400
STREAMS = 5401


def serve(address, congestion, name):
    """Answers requests of 8 bytes, each of which has the length of its answer."""
    stream = lab.connect(address, PORT, congestion)
    stream.sendall(name.to_bytes(4, "big"))
    while True:
        length = int.from_bytes(lab.receive_exactly(stream, 8), "big")
        stream.sendall(bytes(length))


def ask(senders, size, rounds, patience):
    """Asks all senders in rounds; returns the times of all answers, those of rounds, and those of each sender."""
    listener = lab.listen(PORT, senders)
    streams, poll = {}, select.epoll()
    for _ in range(senders):
        stream, _ = listener.accept()
        name = int.from_bytes(lab.receive_exactly(stream, 4), "big")
        stream.setblocking(False)
        streams[stream.fileno()] = (stream, name)
        poll.register(stream, select.EPOLLIN)
    answers, whole, of = [], [], {name: [] for _, name in streams.values()}
    buffer = bytearray(1 << 18)
    for number in range(rounds + 1):
        left = dict.fromkeys(streams, size)
        begin = time.monotonic()
        for stream, _ in streams.values():
            stream.send(size.to_bytes(8, "big"))
        while left:
            ready = poll.poll(patience)
            if not ready:
                return answers, whole, of, len(left)
            for descriptor, _ in ready:
                stream, name = streams[descriptor]
                length = stream.recv_into(buffer)
                if length == 0:
                    raise ConnectionError(f"host {name} has closed its connection")
                left[descriptor] -= length
                if left[descriptor] == 0:
                    del left[descriptor]
                    # The first round opens windows, and is not counted.
                    if number > 0:
                        answers.append(time.monotonic() - begin)
                        of[name].append(answers[-1])
        if number > 0:
            whole.append(time.monotonic() - begin)
    return answers, whole, of, 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--senders", type=int, help="default: all hosts but the first")
    parser.add_argument("--size", type=int, nargs="+", default=[20_000, 200_000], help="bytes of an answer")
    parser.add_argument("--rounds", type=int, default=5 if lab.SMOKE else 100)
    parser.add_argument("--seconds", type=float, default=1 if lab.SMOKE else 10, help="of endless answers; 0: none")
    parser.add_argument("--patience", type=float, default=60, help="seconds without an answer after which to give up")
    parser.add_argument("--congestion", default="cubic")
    args = parser.parse_args()
    lab.require("ip")
    receiver, *senders = lab.hosts((args.senders or 1) + 1)
    senders = senders[: args.senders or len(senders)]
    for size in args.size:
        servers = [host.start(serve, receiver.address, args.congestion, host.number) for host in senders]
        answers, whole, of, missing = receiver.call(ask, len(senders), size, args.rounds, args.patience)
        for server in servers:
            server.terminate()
        if not answers:
            lab.emit("incast", senders=len(senders), bytes=size, missing=missing)
            continue
        rate = lab.number("RATE", 0)
        # The shortest time in which a link can carry the frames of all payloads: headers of Ethernet, IP and TCP with
        # time stamps, and 84 bytes of the tunnel.
        headers = 14 + 20 + 32 + (0 if lab.WITHOUT else 84)
        mtu = lab.number("MTU", 1500)
        share = (mtu + 14 - headers) / (mtu + 14)
        ideal_us = len(senders) * size * 8 / share / rate * 1e6 if rate else 0
        ideal = {"ideal_round_us": ideal_us, "stretch": lab.quantile(whole, 0.5) * 1e6 / ideal_us} if rate else {}
        speeds = [size / (sum(times) / len(times)) for times in of.values() if times]
        lab.emit(
            "incast", senders=len(senders), bytes=size, rounds=args.rounds, missing=missing, **lab.spread(answers),
            round_p50_us=lab.quantile(whole, 0.5) * 1e6, round_p99_us=lab.quantile(whole, 0.99) * 1e6,
            jain_of_mean_speeds=lab.jain(speeds), **ideal,
        )  # fmt: skip
    if not lab.WITHOUT:
        # What the receiver's tunnels have met: packets cut by switches; and what senders sent again.
        tunnels = [tunnel for host in senders for peer in host.status()["peers"] for tunnel in peer["tunnels"]]
        retransmissions = sum(tunnel["retransmissions"] for tunnel in tunnels)
        trimmed = receiver.status()["datagrams"]["trimmed"]
        lab.emit("daemon", trimmed=trimmed, retransmissions=retransmissions)
    if args.seconds:
        for host in senders:
            host.start(lab.stream_to, receiver.address, STREAMS, args.congestion, host.number)
        rates = receiver.call(lab.receive_streams, STREAMS, len(senders), None, 2, args.seconds)
        lab.emit(
            "incast-streams", senders=len(senders), seconds=args.seconds, jain=lab.jain(rates.values()),
            gbps=sum(rates.values()) / 1e9, least_mbps=min(rates.values()) / 1e6, most_mbps=max(rates.values()) / 1e6,
        )  # fmt: skip


main()
