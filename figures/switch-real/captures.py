"""Captures of `selvedge run --trace` and `selvedge lab --trace-dir`, read alike: what happened at one output."""

import bisect
import struct

SECTION, INTERFACE, PACKET = 0x0A0D0D0A, 1, 6
COMMENT, NAME, FLAGS = 1, 2, 2
INBOUND = 1
# Bytes of Ethernet's frame check sequence, which captures are without.
FCS = 4


def options(bytes_):
    """Yields the options of a block: code and value."""
    at = 0
    while at + 4 <= len(bytes_):
        code, length = struct.unpack_from("<HH", bytes_, at)
        if code == 0:
            return
        yield code, bytes_[at + 4 : at + 4 + length]
        at += 4 + (length + 3) // 4 * 4


def packets(path):
    """Yields the packets of a capture: seconds, port, whether it enters, frame's length, comment, first bytes."""
    ports = []
    with open(path, "rb") as file:
        while head := file.read(8):
            kind, length = struct.unpack("<II", head)
            block = file.read(length - 8)[:-4]
            if kind == INTERFACE:
                ports.append(next(value.decode() for code, value in options(block[8:]) if code == NAME))
            elif kind == PACKET:
                interface, high, low, captured, original = struct.unpack_from("<IIIII", block)
                rest = dict(options(block[20 + (captured + 3) // 4 * 4 :]))
                is_inbound = struct.unpack("<I", rest[FLAGS])[0] & 3 == INBOUND
                comment = rest.get(COMMENT, b"").decode()
                seconds = (high << 32 | low) / 1e9
                yield seconds, ports[interface], is_inbound, original + FCS, comment, block[20 : 20 + captured]


def is_marked(frame):
    """Returns whether an IPv4 packet met congestion."""
    return frame[15] & 3 == 3


def quantile(samples, share):
    """Returns the quantile of values over time: `samples` are pairs of value and duration."""
    ordered = sorted(samples)
    sums, total = [], 0.0
    for _, duration in ordered:
        total += duration
        sums.append(total)
    return ordered[bisect.bisect_left(sums, share * total)][0]


def at_output(path, inputs, output, skip, seconds):
    """Returns what happened at an output from `skip` seconds after its first packet on, for so many seconds.

    Packets for the output are those with data that enter through `inputs`, ports of the same switch.
    """
    queue, since, begin, end = 0, None, None, None
    depths, arrived, dropped, sent, marked = [], 0, 0, 0, 0
    for at, port, is_inbound, length, comment, frame in packets(path):
        if is_inbound and port in inputs and length > 200:
            if begin is None:
                begin, end = at + skip, at + skip + seconds
            change = 0 if "dropped" in comment else length
            counts = (1, int(change == 0), 0, 0)
        elif not is_inbound and port == output and begin is not None and length > 200:
            change, counts = -length, (0, 0, 1, int(is_marked(frame)))
        else:
            continue
        if begin <= at < end:
            if since is not None:
                depths.append((queue, at - since))
            since = at
            arrived, dropped = arrived + counts[0], dropped + counts[1]
            sent, marked = sent + counts[2], marked + counts[3]
        queue += change
    if not depths or not sent:
        raise SystemExit(f"{path}: nothing passed {output} for {seconds} s")
    return {
        "arrived": arrived,
        "drop_share": dropped / arrived,
        "mark_share": marked / sent,
        "queue_p50_kb": quantile(depths, 0.5) / 1e3,
        "queue_p99_kb": quantile(depths, 0.99) / 1e3,
    }
