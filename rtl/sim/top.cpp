// Copyright Selvedge contributors. Licensed under the Apache License, Version 2.0; see LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
// irn_top in simulation.
//
//   top trace INPUT OUTPUT           the authors' receiver trace: every answer must equal its line
//   top loop PACKETS SEED PAIRS      PAIRS queue pairs send PACKETS packets to themselves over a channel that loses,
//                                    repeats and reorders packets and acknowledgements, until all are delivered;
//                                    MSNs and CQEs show that each packet counted once
//   top rate EVENTS                  cycles per event, of many queue pairs and of one
//
// Macros: QUEUE_PAIRS and WIDTH as the module's parameters.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <queue>
#include <string>
#include <vector>

#include "Virn_top.h"
#include "verilated.h"

namespace {

constexpr uint32_t kPsnMask = (1u << 24) - 1;

class Top {
 public:
  Top() {
    dut.rst_ni = 0;
    dut.cap_i = WIDTH - WIDTH / 8;
    dut.low_packets_i = 3;
    dut.answer_ready_i = 1;
    dut.extend_ready_i = 1;
    dut.send_ready_i = 1;
    for (int i = 0; i < 3; ++i) edge();
    dut.rst_ni = 1;
  }
  // Inputs are set; outputs can be read until `edge`.
  void settle() {
    dut.clk_i = 0;
    dut.eval();
  }
  void edge() {
    settle();
    dut.clk_i = 1;
    dut.eval();
    ++cycles;
  }
  void open(uint32_t qp, uint32_t psn) {
    dut.open_valid_i = 1;
    dut.open_qp_i = qp;
    dut.open_psn_i = psn;
    settle();
    while (!dut.open_ready_o) {
      edge();
      settle();
    }
    edge();
    dut.open_valid_i = 0;
  }
  Virn_top dut;
  uint64_t cycles = 0;
};

uint64_t random_state = 1;
uint32_t below(uint32_t n) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return static_cast<uint32_t>((random_state >> 32) % n);
}

struct Line {
  uint32_t qp, nack, expected, sack, msn, cqes;
};

int trace(const char* input_path, const char* output_path) {
  FILE* input = fopen(input_path, "r");
  FILE* output = fopen(output_path, "r");
  if (input == nullptr || output == nullptr) {
    fprintf(stderr, "error: cannot read %s\n", input == nullptr ? input_path : output_path);
    return 2;
  }
  unsigned long count = 0;
  if (fscanf(input, "%lu", &count) != 1) {
    fprintf(stderr, "error: %s:1: not the number of events\n", input_path);
    return 2;
  }
  Top top;
  for (uint32_t qp = 0; qp < QUEUE_PAIRS; ++qp) top.open(qp, 0);
  std::deque<Line> flying;
  unsigned long sent = 0, compared = 0, waited = 0;
  const uint64_t begin = top.cycles;
  while (compared < count) {
    top.dut.data_valid_i = 0;
    static uint32_t qp, opcode, psn;
    static bool has = false;
    if (!has && sent < count) {
      if (fscanf(input, "%u %u %u", &qp, &opcode, &psn) != 3) {
        fprintf(stderr, "error: %s:%lu: not three numbers\n", input_path, sent + 2);
        return 2;
      }
      if (qp >= QUEUE_PAIRS) {
        fprintf(stderr, "error: %s:%lu: queue pair %u; there are %u\n", input_path, sent + 2, qp, QUEUE_PAIRS);
        return 2;
      }
      has = true;
    }
    if (has) {
      top.dut.data_valid_i = 1;
      top.dut.data_qp_i = qp;
      top.dut.data_opcode_i = opcode;
      top.dut.data_psn_i = psn;
    }
    top.settle();
    const bool takes = top.dut.data_valid_i && top.dut.data_ready_o;
    if (has && !takes) ++waited;
    if (top.dut.answer_valid_o) {
      Line line{};
      if (fscanf(output, "%u %u %u %u %u", &line.nack, &line.expected, &line.sack, &line.msn, &line.cqes) != 5) {
        fprintf(stderr, "error: %s:%lu: not five numbers\n", output_path, compared + 1);
        return 2;
      }
      const auto& dut = top.dut;
      if (dut.answer_qp_o != flying.front().qp || dut.answer_nack_o != line.nack ||
          dut.answer_cum_ack_o != line.expected || dut.answer_sack_o != line.sack || dut.answer_msn_o != line.msn ||
          dut.answer_cqes_o != line.cqes) {
        fprintf(stderr, "error: %s:%lu: expected %u %u %u %u %u, got %u %u %u %u %u\n", output_path, compared + 1,
                line.nack, line.expected, line.sack, line.msn, line.cqes, dut.answer_nack_o, dut.answer_cum_ack_o,
                dut.answer_sack_o, dut.answer_msn_o, dut.answer_cqes_o);
        return 1;
      }
      flying.pop_front();
      ++compared;
    }
    if (takes) {
      flying.push_back(Line{qp, 0, 0, 0, 0, 0});
      has = false;
      ++sent;
    }
    top.edge();
  }
  printf("events %lu cycles %llu waited %lu mismatches 0\n", compared,
         static_cast<unsigned long long>(top.cycles - begin), waited);
  return 0;
}

// A packet or an acknowledgement on its way.
struct Flight {
  uint64_t at;
  bool is_ack;
  uint32_t qp, a, b, nack;
  bool operator<(const Flight& other) const { return at > other.at; }
};

// The opcode of a packet depends on its place alone, so that all its copies carry the same one.
uint32_t opcode_of(uint32_t index) {
  static const uint32_t opcodes[] = {1, 1, 2, 1, 8, 12, 0, 1, 9, 4, 19, 22, 7, 10, 11, 29, 23, 3};
  return opcodes[(index * 2654435761u >> 16) % (sizeof opcodes / sizeof *opcodes)];
}
bool is_message(uint32_t opcode) {
  return (opcode >= 2 && opcode <= 5) || (opcode >= 8 && opcode <= 12) || opcode == 19 || opcode == 20 ||
         opcode == 22 || opcode == 23 || opcode == 28 || opcode == 29;
}
bool is_receive(uint32_t opcode) {
  return (opcode >= 2 && opcode <= 5) || opcode == 9 || opcode == 11 || opcode == 22 || opcode == 23;
}

int loop(uint32_t packets, uint64_t seed, uint32_t active) {
  random_state = seed * 2 + 1;
  for (int i = 0; i < 16; ++i) below(2);
  Top top;
  auto& dut = top.dut;
  struct Pair {
    uint32_t first, cum = 0, msn = 0, head = 0;
    uint64_t cqes = 0, sent = 0, progress = 0;
    bool quick = false;
  };
  std::vector<Pair> pairs(active);
  for (uint32_t qp = 0; qp < active; ++qp) {
    // Half of them wrap on the way.
    pairs[qp].first = qp % 2 ? below(1 << 24) : (0u - below(packets + 1)) & kPsnMask;
    pairs[qp].cum = pairs[qp].head = pairs[qp].first;
    top.open(qp, pairs[qp].first);
  }
  std::priority_queue<Flight> channel;
  std::deque<Flight> data, acks;
  std::deque<uint32_t> timers;
  uint64_t lost = 0, repeated = 0, timeouts = 0, extended = 0, sent = 0, answers = 0, nacks = 0;
  uint32_t turn = 0, done = 0;
  const uint64_t kTimeout = 6000, kLimit = 400ull * packets * active + 4000000;
  auto travel = [&](Flight flight) {
    const uint32_t fate = below(1000);
    if (fate < 20) {
      ++lost;
      return;
    }
    flight.at = top.cycles + 200 + below(20) + (below(50) == 0 ? below(400) : 0);
    channel.push(flight);
    if (fate >= 990) {
      ++repeated;
      flight.at += below(300);
      channel.push(flight);
    }
  };
  while (done < active) {
    if (top.cycles > kLimit) {
      fprintf(stderr, "error: %u of %u queue pairs are not done after %llu cycles\n", active - done, active,
              static_cast<unsigned long long>(top.cycles));
      return 1;
    }
    while (!channel.empty() && channel.top().at <= top.cycles) {
      (channel.top().is_ack ? acks : data).push_back(channel.top());
      channel.pop();
    }
    if (top.cycles % 64 == 0) {
      for (uint32_t qp = 0; qp < active; ++qp) {
        auto& pair = pairs[qp];
        if (((pair.head - pair.first) & kPsnMask) < packets && top.cycles - pair.progress > kTimeout) {
          pair.progress = top.cycles;
          timers.push_back(qp);
        }
      }
    }
    dut.data_valid_i = !data.empty();
    if (!data.empty()) {
      dut.data_qp_i = data.front().qp;
      dut.data_psn_i = data.front().a;
      dut.data_opcode_i = opcode_of((data.front().a - pairs[data.front().qp].first) & kPsnMask);
    }
    dut.ack_valid_i = !acks.empty();
    if (!acks.empty()) {
      dut.ack_qp_i = acks.front().qp;
      dut.ack_cum_ack_i = acks.front().a;
      dut.ack_sack_i = acks.front().b;
      dut.ack_nack_i = acks.front().nack;
    }
    dut.timer_valid_i = !timers.empty();
    if (!timers.empty()) {
      dut.timer_qp_i = timers.front();
      dut.timer_quick_i = pairs[timers.front()].quick;
      dut.timer_rate_factor_i = 1;
    }
    // The link is free for one after another.
    dut.free_valid_i = 1;
    dut.free_qp_i = turn;
    dut.free_has_limit_i = 1;
    dut.free_limit_i = (pairs[turn].first + packets) & kPsnMask;
    // Consumers pause.
    dut.answer_ready_i = below(8) != 0;
    dut.send_ready_i = below(8) != 0;
    dut.extend_ready_i = below(2) != 0;
    top.settle();
    if (dut.data_valid_i && dut.data_ready_o) data.pop_front();
    if (dut.ack_valid_i && dut.ack_ready_o) {
      auto& pair = pairs[acks.front().qp];
      const uint32_t ahead = (acks.front().a - pair.head) & kPsnMask;
      if (ahead != 0 && ahead < (1u << 22)) {
        pair.head = acks.front().a;
        pair.progress = top.cycles;
        if (((pair.head - pair.first) & kPsnMask) == packets) ++done;
      }
      acks.pop_front();
    }
    if (dut.timer_valid_i && dut.timer_ready_o) {
      ++timeouts;
      pairs[timers.front()].quick = !pairs[timers.front()].quick;
      timers.pop_front();
    }
    if (dut.free_valid_i && dut.free_ready_o) turn = (turn + 1) % active;
    if (dut.extend_valid_o && dut.extend_ready_i) extended += dut.extend_o;
    if (dut.send_valid_o && dut.send_ready_i && dut.send_o) {
      const uint32_t qp = dut.send_qp_o, psn = dut.send_psn_o;
      if (((psn - pairs[qp].first) & kPsnMask) >= packets) {
        fprintf(stderr, "error: queue pair %u sends packet %u behind its last\n", qp, psn);
        return 1;
      }
      ++sent;
      ++pairs[qp].sent;
      travel(Flight{0, false, qp, psn, 0, 0});
    }
    if (dut.answer_valid_o && dut.answer_ready_i) {
      auto& pair = pairs[dut.answer_qp_o];
      ++answers;
      nacks += dut.answer_nack_o;
      // What became deliverable: every packet counts once.
      uint32_t messages = 0, receives = 0;
      for (uint32_t psn = pair.cum; psn != dut.answer_cum_ack_o; psn = (psn + 1) & kPsnMask) {
        const uint32_t opcode = opcode_of((psn - pair.first) & kPsnMask);
        messages += is_message(opcode);
        receives += is_receive(opcode);
      }
      pair.cum = dut.answer_cum_ack_o;
      pair.msn = (pair.msn + messages) & kPsnMask;
      pair.cqes += dut.answer_cqes_o;
      if (dut.answer_msn_o != pair.msn || dut.answer_cqes_o != receives) {
        fprintf(stderr, "error: queue pair %u, packet %u: MSN %u and %u CQEs, expected %u and %u\n", dut.answer_qp_o,
                dut.answer_sack_o, dut.answer_msn_o, dut.answer_cqes_o, pair.msn, receives);
        return 1;
      }
      travel(Flight{0, true, dut.answer_qp_o, dut.answer_cum_ack_o, dut.answer_sack_o, dut.answer_nack_o});
    }
    top.edge();
  }
  for (uint32_t qp = 0; qp < active; ++qp) {
    uint32_t messages = 0, receives = 0;
    for (uint32_t index = 0; index < packets; ++index) {
      messages += is_message(opcode_of(index));
      receives += is_receive(opcode_of(index));
    }
    const auto& pair = pairs[qp];
    if (((pair.cum - pair.first) & kPsnMask) != packets || pair.msn != messages || pair.cqes != receives) {
      fprintf(stderr, "error: queue pair %u ends at %u of %u packets, MSN %u of %u, %llu of %u CQEs\n", qp,
              (pair.cum - pair.first) & kPsnMask, packets, pair.msn, messages,
              static_cast<unsigned long long>(pair.cqes), receives);
      return 1;
    }
  }
  printf("delivered %llu sent %llu lost %llu repeated %llu answers %llu nacks %llu timeouts %llu extended %llu cycles %llu\n",
         static_cast<unsigned long long>(packets) * active, static_cast<unsigned long long>(sent),
         static_cast<unsigned long long>(lost), static_cast<unsigned long long>(repeated),
         static_cast<unsigned long long>(answers), static_cast<unsigned long long>(nacks),
         static_cast<unsigned long long>(timeouts), static_cast<unsigned long long>(extended),
         static_cast<unsigned long long>(top.cycles));
  return 0;
}

int rate(uint32_t events) {
  for (const uint32_t pairs : {static_cast<uint32_t>(QUEUE_PAIRS), 1u}) {
    Top top;
    for (uint32_t qp = 0; qp < QUEUE_PAIRS; ++qp) top.open(qp, 0);
    std::vector<uint32_t> psn(QUEUE_PAIRS);
    uint32_t qp = 0, taken = 0;
    uint64_t begin = top.cycles;
    while (taken < events) {
      top.dut.data_valid_i = 1;
      top.dut.data_qp_i = qp;
      top.dut.data_opcode_i = 4;
      top.dut.data_psn_i = psn[qp];
      top.settle();
      if (top.dut.data_ready_o) {
        ++psn[qp];
        qp = (qp + 1) % pairs;
        ++taken;
      }
      top.edge();
    }
    const double data = static_cast<double>(top.cycles - begin) / events;
    top.dut.data_valid_i = 0;
    for (int i = 0; i < 20; ++i) top.edge();
    begin = top.cycles;
    taken = 0;
    qp = 0;
    while (taken < events) {
      top.dut.free_valid_i = 1;
      top.dut.free_qp_i = qp;
      top.settle();
      if (top.dut.free_ready_o) {
        qp = (qp + 1) % pairs;
        ++taken;
      }
      top.edge();
    }
    printf("queue-pairs %u data %.3f sender %.3f\n", pairs, data, static_cast<double>(top.cycles - begin) / events);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "trace" && argc == 4) return trace(argv[2], argv[3]);
  if (what == "loop" && argc == 5) {
    const unsigned long pairs = strtoul(argv[4], nullptr, 10);
    if (pairs >= 1 && pairs <= QUEUE_PAIRS) {
      return loop(strtoul(argv[2], nullptr, 10), strtoull(argv[3], nullptr, 10), pairs);
    }
  }
  if (what == "rate" && argc == 3) return rate(strtoul(argv[2], nullptr, 10));
  fprintf(stderr, "usage: top trace INPUT OUTPUT | loop PACKETS SEED PAIRS (1 to %d) | rate EVENTS\n", QUEUE_PAIRS);
  return 2;
}
