# Copyright Selvedge contributors. Licensed under the Apache License, Version 2.0; see LICENSE.
# SPDX-License-Identifier: Apache-2.0
"""Valid/ready streams for cocotb: a source and a sink that pause at random, and bins of functional coverage."""

import json
import os
import random

from cocotb.triggers import FallingEdge, RisingEdge, Timer


class Pauses:
    """Cycles in which a stream rests: none for a while, then single ones, then bursts, then nearly all."""

    HABITS = [(0.0, 1), (0.3, 1), (0.1, 20), (0.8, 3), (0.02, 100)]

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.left = 0
        self.habit = self.HABITS[0]
        self.until = 0
        self.cycle = 0

    def rests(self):
        """Whether the stream rests in this cycle."""
        self.cycle += 1
        if self.cycle >= self.until:
            self.habit = self.random.choice(self.HABITS)
            self.until = self.cycle + self.random.randrange(50, 400)
        if self.left > 0:
            self.left -= 1
            return True
        chance, longest = self.habit
        if self.random.random() < chance:
            self.left = self.random.randrange(longest)
            return True
        return False


class Coverage:
    """Counts how often each of the bins that were named was hit."""

    def __init__(self, name, bins):
        self.name = name
        self.bins = dict.fromkeys(bins, 0)

    def hit(self, bin_name, condition=True):
        """One more, if the condition holds; an unknown name is an error."""
        if condition:
            self.bins[bin_name] += 1

    def report(self):
        """Writes the counts to the file that RTL_COVERAGE names; returns the bins that were never hit."""
        with open(os.environ["RTL_COVERAGE"], "w", encoding="utf-8") as file:
            json.dump({"module": self.name, "bins": self.bins}, file, indent=1)
        return [name for name, count in self.bins.items() if count == 0]


class Bench:
    """A module between a source and a sink.

    Each vector is a pair of dictionaries: the values of input ports, and those that output ports must have. Outputs
    must not change while they wait, and come in order.
    """

    def __init__(self, dut, vectors, outputs, seed, coverage, meaning=lambda values: values):
        self.dut = dut
        self.vectors = vectors
        self.outputs = outputs
        # What of an answer counts.
        self.meaning = meaning
        self.coverage = coverage
        self.source = Pauses(2 * seed)
        self.sink = Pauses(2 * seed + 1)

    async def reset(self):
        """Holds the reset for three cycles."""
        self.dut.valid_i.value = 0
        self.dut.ready_i.value = 0
        self.dut.rst_ni.value = 0
        for _ in range(3):
            await RisingEdge(self.dut.clk_i)
        await FallingEdge(self.dut.clk_i)
        self.dut.rst_ni.value = 1

    async def run(self, limit=100):
        """Drives all vectors; `limit` is the most cycles between two transfers while nobody rests."""
        dut = self.dut
        sent = taken = idle = 0
        offered = False
        held = None
        was_sending = was_taking = False
        while taken < len(self.vectors):
            # Inputs change at the falling edge.
            await FallingEdge(dut.clk_i)
            if not offered and sent < len(self.vectors) and not self.source.rests():
                for name, value in self.vectors[sent][0].items():
                    getattr(dut, name).value = value
                offered = True
            dut.valid_i.value = int(offered)
            resting = self.sink.rests()
            dut.ready_i.value = int(not resting)
            # Outputs follow inputs without a clock; the rising edge is still to come.
            await Timer(1, units="ns")
            valid = int(dut.valid_o.value) == 1
            ready = int(dut.ready_o.value) == 1
            got = {name: int(getattr(dut, name).value) for name in self.outputs} if valid else None
            assert held is None or got == held, f"event {taken}: the answer changed while it waited: {held} {got}"
            sending, taking = offered and ready, valid and not resting
            self.coverage.hit("the output waits", valid and resting)
            self.coverage.hit("the input waits", offered and not ready)
            self.coverage.hit("input and output in one cycle", sending and taking)
            self.coverage.hit("two inputs in a row", sending and was_sending)
            self.coverage.hit("two outputs in a row", taking and was_taking)
            was_sending, was_taking = sending, taking
            if taking:
                expected = self.vectors[taken][1]
                assert self.meaning(got) == self.meaning(expected), f"event {taken}: {self.vectors[taken][0]}: expected {expected}, got {got}"
                taken += 1
            held = got if valid and resting else None
            if sending:
                sent += 1
                offered = False
            idle = 0 if sending or taking or resting or not offered else idle + 1
            assert idle <= limit, f"event {taken}: nothing moves for {limit} cycles"
        assert sent == taken == len(self.vectors)
