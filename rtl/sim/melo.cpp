// Copyright Selvedge contributors. Licensed under the Apache License, Version 2.0; see LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
// melo_rx beside the engine. Reads the lines of crates/transport/examples/melo_rtl.rs from standard input, compares
// every answer, and prints how many packets took how many cycles. Macro: SLOTS, the reorder buffer's.

#include <cstdint>
#include <cstdio>
#include <map>

#include "Vmelo_rx.h"
#include "verilated.h"

int main() {
  Vmelo_rx dut;
  dut.clk_i = 0;
  dut.rst_ni = 0;
  dut.valid_i = 0;
  dut.ready_i = 1;
  dut.slots_i = SLOTS;
  const auto edge = [&dut] {
    dut.clk_i = 0;
    dut.eval();
    dut.clk_i = 1;
    dut.eval();
  };
  edge();
  dut.rst_ni = 1;
  std::map<unsigned, unsigned long> histogram;
  unsigned long events = 0;
  unsigned qp, psn, verdict, nack, cum, holes[6], free_blocks;
  while (scanf("%u %u %u %u %u %u %u %u %u %u %u %u", &qp, &psn, &verdict, &nack, &cum, &holes[0], &holes[1], &holes[2],
               &holes[3], &holes[4], &holes[5], &free_blocks) == 12) {
    ++events;
    dut.valid_i = 1;
    dut.qp_i = qp;
    dut.psn_i = psn & 0xffffff;
    dut.clk_i = 0;
    dut.eval();
    for (int i = 0; i < 10000 && !dut.ready_o; ++i) {
      edge();
      dut.clk_i = 0;
      dut.eval();
    }
    unsigned cycles = 0;
    edge();
    ++cycles;
    dut.valid_i = 0;
    dut.clk_i = 0;
    dut.eval();
    while (!dut.valid_o && cycles < 10000) {
      edge();
      dut.clk_i = 0;
      dut.eval();
      ++cycles;
    }
    // The cycle in which the answer is taken.
    ++cycles;
    bool same = dut.valid_o && dut.verdict_o == verdict && dut.nack_o == nack && dut.cum_ack_o == cum &&
                dut.free_o == free_blocks;
    for (int i = 0; i < 3; ++i) {
      const uint32_t hole = dut.holes_o[2 - i];
      same = same && hole >> 16 == (holes[2 * i + 1] == 0 ? hole >> 16 : holes[2 * i]) &&
             (hole & 0xffff) == holes[2 * i + 1];
    }
    if (!same) {
      fprintf(stderr,
              "error: packet %lu (connection %u, PSN %u): expected verdict %u nack %u cum %u holes %u+%u %u+%u %u+%u free "
              "%u, got %u %u %u %u+%u %u+%u %u+%u %u\n",
              events, qp, psn, verdict, nack, cum, holes[0], holes[1], holes[2], holes[3], holes[4], holes[5],
              free_blocks, dut.verdict_o, dut.nack_o, dut.cum_ack_o, dut.holes_o[2] >> 16, dut.holes_o[2] & 0xffff,
              dut.holes_o[1] >> 16, dut.holes_o[1] & 0xffff, dut.holes_o[0] >> 16, dut.holes_o[0] & 0xffff, dut.free_o);
      return 1;
    }
    ++histogram[cycles];
    edge();
  }
  printf("events %lu mismatches 0\n", events);
  for (const auto& [cycles, packets] : histogram) {
    printf("cycles %u packets %lu share %.4f %%\n", cycles, packets, 100.0 * packets / events);
  }
  return 0;
}
