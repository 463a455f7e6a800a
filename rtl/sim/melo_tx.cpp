// Copyright Selvedge contributors. Licensed under the Apache License, Version 2.0; see LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
// melo_tx beside the engine. Reads the lines of crates/transport/examples/melo_sender_rtl.rs from standard input,
// compares every answer, and prints how many events took how many cycles. Macro: CAP, that of new packets.

#include <cstdint>
#include <cstdio>
#include <map>

#include "Vmelo_tx.h"
#include "verilated.h"

int main() {
  Vmelo_tx dut;
  dut.rst_ni = 0;
  dut.ready_i = 1;
  dut.cap_i = CAP;
  const auto settle = [&dut] {
    dut.clk_i = 0;
    dut.eval();
  };
  const auto edge = [&dut, &settle] {
    settle();
    dut.clk_i = 1;
    dut.eval();
  };
  edge();
  dut.rst_ni = 1;
  std::map<unsigned, unsigned long> histogram;
  unsigned long events = 0, loaded = 0;
  unsigned qp, kind, cum, sack, holes[6], send, psn, again, loss, acked, sent, waits, free_blocks;
  while (scanf("%u %u %u %u %u %u %u %u %u %u %u %u %u %u %u %u %u %u", &qp, &kind, &cum, &sack, &holes[0], &holes[1],
               &holes[2], &holes[3], &holes[4], &holes[5], &send, &psn, &again, &loss, &acked, &sent, &waits,
               &free_blocks) == 18) {
    ++events;
    dut.valid_i = 1;
    dut.qp_i = qp;
    dut.kind_i = kind;
    dut.cum_ack_i = cum & 0xffffff;
    dut.sack_i = sack & 0xffffff;
    for (int i = 0; i < 3; ++i) dut.holes_i[2 - i] = holes[2 * i] << 16 | holes[2 * i + 1];
    settle();
    for (int i = 0; i < 10000 && !dut.ready_o; ++i) {
      edge();
      settle();
    }
    unsigned cycles = 0;
    edge();
    ++cycles;
    dut.valid_i = 0;
    settle();
    while (!dut.valid_o && cycles < 10000) {
      edge();
      settle();
      ++cycles;
    }
    // The cycle in which the answer is taken.
    ++cycles;
    if (!dut.valid_o || dut.send_o != send || dut.psn_o != psn || dut.again_o != again || dut.loss_o != loss ||
        dut.acked_o != acked || dut.sent_o != sent || dut.waits_o != waits || dut.free_o != free_blocks) {
      fprintf(stderr,
              "error: event %lu (connection %u, kind %u, cum %u, sack %u): expected sends %u psn %u again %u loss %u "
              "acked %u sent %u waits %u free %u, got %u %u %u %u %u %u %u %u\n",
              events, qp, kind, cum, sack, send, psn, again, loss, acked, sent, waits, free_blocks, dut.send_o,
              dut.psn_o, dut.again_o, dut.loss_o, dut.acked_o, dut.sent_o, dut.waits_o, dut.free_o);
      return 1;
    }
    ++histogram[cycles];
    loaded += loss;
    edge();
  }
  printf("events %lu mismatches 0\n", events);
  for (const auto& [cycles, count] : histogram) {
    printf("cycles %u packets %lu share %.4f %%\n", cycles, count, 100.0 * count / events);
  }
  printf("losses %lu\n", loaded);
  return 0;
}
