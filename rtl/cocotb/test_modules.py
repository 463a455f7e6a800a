# Copyright Selvedge contributors. Licensed under the Apache License, Version 2.0; see LICENSE.
# SPDX-License-Identifier: Apache-2.0
"""IRN's modules and MELO's receiver in cocotb, with random pauses on each stream.

Vectors come from the engines (crates/transport/examples/irn_rtl.rs, melo_rtl.rs); `cargo xtask rtl cocotb` runs this
with RTL_MODULE, RTL_BITMAP, ... in the environment, as run.py sets them.
"""

import os

import cocotb
from cocotb.clock import Clock

from streams import Bench, Coverage

PSN = 24
MODULUS = 1 << PSN


def module_ports(module, w):
    """Ports of a module, highest bits of the vector first: inputs, outputs."""
    receiver, sender, timer = 2 * PSN + 2 * w, 4 * PSN + w + 3, 4 * PSN + 3
    return {
        "receive_data": (
            [("opcode_i", 5), ("psn_i", PSN), ("ctx_i", receiver)],
            [("nack_o", 1), ("cum_ack_o", PSN), ("msn_o", PSN), ("sack_o", PSN), ("cqes_o", w.bit_length()),
             ("ctx_o", receiver)],
        ),
        "tx_free": (
            [("cap_i", PSN), ("has_limit_i", 1), ("limit_i", PSN), ("ctx_i", sender)],
            [("send_o", 1), ("psn_o", PSN), ("ctx_o", sender)],
        ),
        "receive_ack": (
            [("nack_i", 1), ("cum_ack_i", PSN), ("sack_i", PSN), ("ctx_i", sender)],
            [("ctx_o", sender)],
        ),
        "timeout": ([("low_packets_i", PSN), ("ctx_i", timer)], [("extend_o", 1), ("ctx_o", timer)]),
    }[module]


def split(number, ports):
    """Values of ports, of which the last has the lowest bits."""
    values = {}
    for name, bits in reversed(ports):
        values[name] = number & ((1 << bits) - 1)
        number >>= bits
    assert number == 0, "the vector has more bits than the ports"
    return values


def flat_vectors(path, inputs, outputs):
    """A line per event, two hexadecimal numbers."""
    with open(path, encoding="utf-8") as file:
        lines = [line.split() for line in file]
    return [(split(int(given, 16), inputs), split(int(expected, 16), outputs)) for given, expected in lines]


def melo_vectors(path, blocks):
    """A line per packet: see melo_rtl.rs."""
    vectors = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            qp, psn, verdict, nack, cum, *rest = map(int, line.split())
            holes, free = rest[:6], rest[6]
            word = 0
            for start, length in zip(holes[::2], holes[1::2]):
                word = word << 32 | start << 16 | length
            given = {"slots_i": 8 * blocks, "qp_i": qp, "psn_i": psn % MODULUS}
            expected = {"verdict_o": verdict, "nack_o": nack, "cum_ack_o": cum, "holes_o": word, "free_o": free}
            vectors.append((given, expected))
    return vectors


def melo_meaning(values):
    """Of a hole without length, nothing but that counts."""
    word = values["holes_o"]
    holes = [word >> 32 * i & 0xFFFF_FFFF for i in range(3)]
    return values | {"holes_o": [hole if hole & 0xFFFF else 0 for hole in holes]}


# What must happen to streams: of any module, of those that handle one event while the next comes, and of pipelined ones.
STREAMS = ["the output waits", "the input waits"]
OVERLAP = ["input and output in one cycle"]
FAST = ["two inputs in a row", "two outputs in a row"]


class Field:
    """Fields of a packed context."""

    def __init__(self, number, fields):
        self.values = split(number, fields)

    def __getattr__(self, name):
        return self.values[name]


def sender_context(number, w):
    """A sender_ctx_t."""
    return Field(number, [("next", PSN), ("acked", PSN), ("retransmit", PSN), ("recover", PSN), ("sacks", w),
                          ("do_retransmit", 1), ("in_recovery", 1), ("find_new_hole", 1)])


def receiver_context(number, w):
    """A receiver_ctx_t."""
    return Field(number, [("expected", PSN), ("msn", PSN), ("map1", w), ("map2", w)])


def ahead(psn, head):
    """Distance from the head, signed."""
    offset = (psn - head) % MODULUS
    return offset - MODULUS if offset >= MODULUS // 2 else offset


def cover_receive_data(coverage, given, expected, w):
    """Where the packet lies, what it ends, how far the head moves."""
    before = receiver_context(given["ctx_i"], w)
    offset = ahead(given["psn_i"], before.expected)
    kind = ("next" if offset == 0 else "behind" if offset < 0 else "beyond the bitmap" if offset >= w
            else "arrived before" if (before.map1 | before.map2) >> offset & 1 else "new and ahead")
    coverage.hit(kind)
    coverage.hit("last slot of the bitmap", offset == w - 1)
    coverage.hit("first behind the bitmap", offset == w)
    moved = ahead(expected["cum_ack_o"], before.expected)
    coverage.hit("moves by one", moved == 1)
    coverage.hit("moves by less than a group", 1 < moved < 8)
    coverage.hit("moves by whole groups", moved > 8 and (moved - 1) % 8 == 0)
    coverage.hit("moves by more than half the bitmap", moved > w // 2)
    coverage.hit("the head wraps", expected["cum_ack_o"] < before.expected)
    coverage.hit("no CQE of a message", expected["cqes_o"] == 0 and expected["msn_o"] != before.msn)
    coverage.hit("one CQE", expected["cqes_o"] == 1)
    coverage.hit("many CQEs", expected["cqes_o"] > 8)
    for opcode in range(32):
        coverage.hit(f"opcode {opcode}", given["opcode_i"] == opcode)


def cover_tx_free(coverage, given, expected, w):
    """What is sent, and what the search finds."""
    before, after = sender_context(given["ctx_i"], w), sender_context(expected["ctx_o"], w)
    pending = before.do_retransmit
    # Proved (formal/sender_invariants.svh), and so no situation to wait for.
    assert not pending or ahead(before.retransmit, before.acked) >= 0, "a packet behind the head waits to be sent again"
    coverage.hit("sends the head again", pending and before.retransmit == before.acked)
    coverage.hit("sends a hole again", pending and before.retransmit != before.acked)
    coverage.hit("sends a new packet", expected["send_o"] and not pending)
    coverage.hit("the cap binds", not pending and not expected["send_o"] and not given["has_limit_i"])
    coverage.hit("the limit binds", not pending and not expected["send_o"] and given["has_limit_i"])
    coverage.hit("finds a hole", after.do_retransmit)
    coverage.hit("finds none", (pending or before.find_new_hole) and not after.do_retransmit)
    coverage.hit("searches without a retransmission", not pending and before.find_new_hole)
    coverage.hit("the next PSN wraps", after.next < before.next)
    hole = ahead(after.retransmit, after.acked)
    coverage.hit("finds a hole in the upper half", after.do_retransmit and hole >= w // 2)


def cover_receive_ack(coverage, given, expected, w):
    """What the acknowledgement moves, marks and ends."""
    before, after = sender_context(given["ctx_i"], w), sender_context(expected["ctx_o"], w)
    advance, sack = ahead(given["cum_ack_i"], before.acked), ahead(given["sack_i"], after.acked)
    nack = given["nack_i"]
    coverage.hit("nothing new", advance == 0)
    coverage.hit("behind the head", -(1 << 22) <= advance < 0)
    coverage.hit("too far behind", advance < -(1 << 22))
    coverage.hit("too far ahead", advance >= 1 << 22)
    coverage.hit("the head moves", 0 < advance < w)
    coverage.hit("the whole bitmap is left", w <= advance < 1 << 22)
    coverage.hit("acknowledges what was not sent", after.next != before.next)
    coverage.hit("a SACK in the bitmap", nack and 0 < sack < w)
    coverage.hit("a SACK below the head", nack and sack < 0)
    coverage.hit("a SACK beyond the bitmap", nack and sack >= w)
    coverage.hit("a SACK of what waits to be sent again",
                 nack and before.in_recovery and before.do_retransmit and given["sack_i"] == before.retransmit)
    coverage.hit("recovery ends", before.in_recovery and not after.in_recovery)
    coverage.hit("a partial acknowledgement", 0 < advance and after.in_recovery and after.do_retransmit)
    coverage.hit("a NACK outside recovery marks the head",
                 nack and not before.in_recovery and not before.do_retransmit and after.do_retransmit)
    coverage.hit("a search is due", after.find_new_hole and not before.find_new_hole)
    coverage.hit("the head wraps", after.acked < before.acked)


def cover_timeout(coverage, given, expected, _):
    """Why it is extended, or not."""
    before = Field(given["ctx_i"], [("next", PSN), ("acked", PSN), ("retransmit", PSN), ("do_retransmit", 1),
                                    ("find_new_hole", 1), ("quick", 1), ("rate_factor", PSN)])
    many = (before.next - before.acked) % MODULUS > given["low_packets_i"]
    throttled = before.rate_factor > 4
    coverage.hit("RTO_high", not before.quick)
    coverage.hit("RTO_low, few packets", before.quick and not many and not throttled)
    coverage.hit("RTO_low, many packets", before.quick and many and not throttled)
    coverage.hit("RTO_low, throttled", before.quick and not many and throttled)
    coverage.hit("a factor of 4 does not throttle", before.quick and before.rate_factor == 4 and not expected["extend_o"])
    coverage.hit("a retransmission waits already", bool(before.do_retransmit))


def cover_melo_rx(coverage, _, expected, __):
    """Verdicts, and the pool's state."""
    for number, name in enumerate(["in order", "a run released", "buffered", "duplicate", "refused"]):
        coverage.hit(name, expected["verdict_o"] == number)
    coverage.hit("a hole forms", expected["nack_o"] == 1)
    coverage.hit("no block is free", expected["free_o"] == 0)
    coverage.hit("three holes", all(expected["holes_o"] >> 32 * i & 0xFFFF for i in range(3)))


BINS = {
    "receive_data": (cover_receive_data, [
        "next", "behind", "beyond the bitmap", "arrived before", "new and ahead", "last slot of the bitmap",
        "first behind the bitmap", "moves by one", "moves by less than a group", "moves by whole groups",
        "moves by more than half the bitmap", "the head wraps", "no CQE of a message", "one CQE", "many CQEs",
        *(f"opcode {opcode}" for opcode in range(32))]),
    "tx_free": (cover_tx_free, [
        "sends the head again", "sends a hole again", "sends a new packet",
        "the cap binds", "the limit binds", "finds a hole", "finds none", "searches without a retransmission",
        "the next PSN wraps", "finds a hole in the upper half"]),
    "receive_ack": (cover_receive_ack, [
        "nothing new", "behind the head", "too far behind", "too far ahead", "the head moves",
        "the whole bitmap is left", "acknowledges what was not sent", "a SACK in the bitmap", "a SACK below the head",
        "a SACK beyond the bitmap", "a SACK of what waits to be sent again", "recovery ends",
        "a partial acknowledgement", "a NACK outside recovery marks the head", "a search is due", "the head wraps"]),
    "timeout": (cover_timeout, [
        "RTO_high", "RTO_low, few packets", "RTO_low, many packets", "RTO_low, throttled",
        "a factor of 4 does not throttle", "a retransmission waits already"]),
    "melo_rx": (cover_melo_rx, [
        "in order", "a run released", "buffered", "duplicate", "refused", "a hole forms", "no block is free",
        "three holes"]),
}


@cocotb.test()
async def answers_are_the_engines_whatever_the_pauses(dut):
    """Every answer and context, in order, while both streams pause; every bin of coverage is hit."""
    module, w = os.environ["RTL_MODULE"], int(os.environ["RTL_BITMAP"])
    pipelined = os.environ["RTL_PIPELINED"] == "1"
    cover, bins = BINS[module]
    if module == "melo_rx":
        vectors = melo_vectors(os.environ["RTL_VECTORS"], w)
        outputs = list(vectors[0][1])
        limit = 3 * w
    else:
        inputs, outs = module_ports(module, w)
        vectors = flat_vectors(os.environ["RTL_VECTORS"], inputs, outs)
        outputs = [name for name, _ in outs]
        limit = 10
    streams = STREAMS if module == "melo_rx" else STREAMS + OVERLAP + (FAST if pipelined else [])
    coverage = Coverage(os.environ["RTL_NAME"], [*STREAMS, *OVERLAP, *FAST, *bins])
    for given, expected in vectors:
        cover(coverage, given, expected, w)
    cocotb.start_soon(Clock(dut.clk_i, 10, units="ns").start())
    meaning = melo_meaning if module == "melo_rx" else dict
    bench = Bench(dut, vectors, outputs, int(os.environ["RTL_SEED"]), coverage, meaning)
    await bench.reset()
    await bench.run(limit)
    missed = [name for name in coverage.report() if name in [*streams, *bins]]
    assert not missed, f"never happened: {', '.join(missed)}"
