#!/usr/bin/env python3
"""Two hosts of `selvedge lab` as seen by RDMA NICs: one sends RoCEv2 packets in order, the other says what came.

Run in the laboratory with the names of its namespaces: prints the PSNs that came, as JSON. Needs no RDMA library.
"""

import json
import socket
import struct
import subprocess
import sys
import time
import zlib

SENDER, RECEIVER = ("10.77.0.2", 50_000), ("10.77.0.1", 4_791)
PACKETS, PAYLOAD = 1_000, 512
SEND_ONLY, QUEUE_PAIR = 0x04, 17
IP_MTU_DISCOVER, IP_PMTUDISC_DO = 10, 2


def packet(psn):
    """Returns a packet from its BTH to its ICRC."""
    bth = struct.pack(">BBHII", SEND_ONLY, 0, 0xFFFF, QUEUE_PAIR, psn)
    payload = psn.to_bytes(4, "big") * (PAYLOAD // 4)
    length = 8 + len(bth) + PAYLOAD + 4
    # Fields that routers change count as ones, as do eight bytes before the IP header.
    ip = struct.pack(">BBHIBBH", 0x45, 0xFF, 20 + length, 0x4000, 0xFF, 17, 0xFFFF)
    ip += socket.inet_aton(SENDER[0]) + socket.inet_aton(RECEIVER[0])
    udp = struct.pack(">HHHH", SENDER[1], RECEIVER[1], length, 0xFFFF)
    masked = bth[:4] + b"\xff" + bth[5:]
    crc = zlib.crc32(b"\xff" * 8 + ip + udp + masked + payload)
    return bth + payload + struct.pack("<I", crc)


def send():
    """Sends all packets, a hundred microseconds apart."""
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    # The kernel then writes identification 0, which the ICRC covers.
    out.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO)
    out.bind(SENDER)
    for psn in range(PACKETS):
        out.sendto(packet(psn), RECEIVER)
        time.sleep(1e-4)


def receive():
    """Prints the PSNs of the packets that come, until none has come for a second."""
    came = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    came.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    came.bind(RECEIVER)
    print("ready", flush=True)
    psns = []
    came.settimeout(5)
    try:
        while True:
            bytes_of = came.recv(2_048)
            psn = int.from_bytes(bytes_of[9:12], "big")
            assert bytes_of == packet(psn), "the packet that was sent, byte for byte"
            psns.append(psn)
            came.settimeout(1)
    except TimeoutError:
        print(json.dumps(psns))


def main(first, second):
    """Runs both hosts, the receiver in the first namespace."""

    def start(host, role):
        words = ["ip", "netns", "exec", host, sys.executable, sys.argv[0], role]
        return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)

    receiver = start(first, "receive")
    assert receiver.stdout.readline() == "ready\n"
    start(second, "send").wait()
    print(receiver.stdout.read(), end="")
    sys.exit(receiver.wait())


if sys.argv[1:] == ["send"]:
    send()
elif sys.argv[1:] == ["receive"]:
    receive()
else:
    main(*sys.argv[1:])
