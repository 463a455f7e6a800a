// Copyright Selvedge contributors. Licensed under the Apache License, Version 2.0; see LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
// melo_rx beside the engine: `melo ON-CHIP` reads the lines of crates/transport/examples/melo_rtl.rs from standard
// input, compares every answer, and prints how many packets took how many cycles. With ON-CHIP other than 0, that many
// connections are on the chip; it swaps the least recently used one, as a NIC's driver would, and prints how many
// cycles that took. Macro: SLOTS, the reorder buffer's.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <list>
#include <map>
#include <vector>

#include "Vmelo_rx.h"
#include "verilated.h"

namespace {

constexpr unsigned kContextWords = 5;

// A connection off the chip.
struct Away {
  uint32_t context[kContextWords] = {};
  std::vector<uint8_t> bits;
};

class Chip {
 public:
  Chip() {
    dut.rst_ni = 0;
    dut.ready_i = 1;
    dut.slots_i = SLOTS;
    dut.swapped_ready_i = 1;
    edge();
    dut.rst_ni = 1;
  }
  void settle() {
    dut.clk_i = 0;
    dut.eval();
  }
  void edge() {
    settle();
    dut.clk_i = 1;
    dut.eval();
  }

  // A packet, until its answer can be read; returns the number of cycles.
  unsigned packet(unsigned place, uint32_t psn) {
    dut.valid_i = 1;
    dut.qp_i = place;
    dut.psn_i = psn & 0xffffff;
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
    return cycles + 1;
  }

  // Swaps; returns whether there was room. The host is slow now and then.
  bool swap(bool load, unsigned place, Away& away) {
    static uint32_t pauses = 1;
    dut.swap_valid_i = 1;
    dut.swap_load_i = load;
    dut.swap_qp_i = place;
    for (unsigned i = 0; i < kContextWords; ++i) dut.swap_ctx_i[i] = away.context[i];
    settle();
    for (int i = 0; i < 10000 && !dut.swap_ready_o; ++i) {
      edge();
      settle();
    }
    edge();
    dut.swap_valid_i = 0;
    unsigned cycles = 1;
    size_t given = 0;
    if (!load) away.bits.clear();
    for (; cycles < 10000; ++cycles) {
      pauses = pauses * 1664525 + 1013904223;
      const bool is_slow = pauses >> 28 == 0;
      dut.out_ready_i = !is_slow;
      dut.in_valid_i = !is_slow && given < away.bits.size();
      dut.in_bits_i = given < away.bits.size() ? away.bits[given] : 0;
      settle();
      if (dut.out_valid_o && dut.out_ready_i) away.bits.push_back(dut.out_bits_o);
      if (dut.in_ready_o && dut.in_valid_i) ++given;
      if (dut.swapped_valid_o) break;
      edge();
    }
    ++swap_cycles[cycles + 1];
    const bool is_ok = dut.swapped_valid_o && dut.swapped_ok_o;
    if (!load) {
      for (unsigned i = 0; i < kContextWords; ++i) away.context[i] = dut.swapped_ctx_o[i];
    }
    if (load && is_ok && given != away.bits.size()) {
      fprintf(stderr, "error: %zu of %zu blocks were loaded\n", given, away.bits.size());
      exit(1);
    }
    edge();
    dut.in_valid_i = 0;
    dut.out_ready_i = 0;
    return is_ok;
  }

  Vmelo_rx dut;
  std::map<unsigned, unsigned long> swap_cycles;
};

}  // namespace

int main(int argc, char** argv) {
  const unsigned on_chip = argc > 1 ? strtoul(argv[1], nullptr, 10) : 0;
  Chip chip;
  auto& dut = chip.dut;
  std::map<unsigned, unsigned long> histogram;
  unsigned long events = 0, swaps = 0, crowded = 0;
  // Connections on the chip, the one used last at the end, and their places.
  std::list<unsigned> recent;
  std::map<unsigned, unsigned> places;
  std::vector<unsigned> vacant;
  for (unsigned place = on_chip; place > 0; --place) vacant.push_back(place - 1);
  std::map<unsigned, Away> away;
  unsigned qp, psn, verdict, nack, cum, holes[6], free_blocks;
  while (scanf("%u %u %u %u %u %u %u %u %u %u %u %u", &qp, &psn, &verdict, &nack, &cum, &holes[0], &holes[1], &holes[2],
               &holes[3], &holes[4], &holes[5], &free_blocks) == 12) {
    ++events;
    unsigned place = qp;
    bool is_here = true;
    if (on_chip > 0) {
      if (places.count(qp)) {
        recent.remove(qp);
      } else {
        if (vacant.empty()) {
          const unsigned victim = recent.front();
          recent.pop_front();
          vacant.push_back(places[victim]);
          places.erase(victim);
          chip.swap(false, vacant.back(), away[victim]);
          ++swaps;
        }
        is_here = chip.swap(true, vacant.back(), away[qp]);
        if (is_here) {
          places[qp] = vacant.back();
          vacant.pop_back();
        }
      }
      if (is_here) {
        recent.push_back(qp);
        place = places[qp];
      }
    }
    bool same;
    if (is_here) {
      const unsigned cycles = chip.packet(place, psn);
      ++histogram[cycles];
      same = dut.valid_o && dut.verdict_o == verdict && dut.nack_o == nack && dut.cum_ack_o == cum &&
             dut.free_o == free_blocks;
      for (int i = 0; i < 3; ++i) {
        const uint32_t hole = dut.holes_o[2 - i];
        same = same && hole >> 16 == (holes[2 * i + 1] == 0 ? hole >> 16 : holes[2 * i]) &&
               (hole & 0xffff) == holes[2 * i + 1];
      }
    } else {
      // The packet of a connection for which there is no room is dropped.
      ++crowded;
      same = verdict == 4 && nack == 0 && dut.free_o == free_blocks;
    }
    if (!same) {
      fprintf(stderr,
              "error: packet %lu (connection %u, PSN %u%s): expected verdict %u nack %u cum %u holes %u+%u %u+%u %u+%u "
              "free %u, got %u %u %u %u+%u %u+%u %u+%u %u\n",
              events, qp, psn, is_here ? "" : ", off the chip", verdict, nack, cum, holes[0], holes[1], holes[2],
              holes[3], holes[4], holes[5], free_blocks, dut.verdict_o, dut.nack_o, dut.cum_ack_o,
              dut.holes_o[2] >> 16, dut.holes_o[2] & 0xffff, dut.holes_o[1] >> 16, dut.holes_o[1] & 0xffff,
              dut.holes_o[0] >> 16, dut.holes_o[0] & 0xffff, dut.free_o);
      return 1;
    }
    if (is_here) chip.edge();
  }
  printf("events %lu mismatches 0\n", events);
  for (const auto& [cycles, packets] : histogram) {
    printf("cycles %u packets %lu share %.4f %%\n", cycles, packets, 100.0 * packets / events);
  }
  if (on_chip > 0) {
    printf("swaps %lu, packets dropped for lack of room %lu, cycles %u to %u\n", swaps, crowded,
           chip.swap_cycles.begin()->first, chip.swap_cycles.rbegin()->first);
  }
  return 0;
}
