// Copyright Selvedge contributors. Licensed under the Apache License, Version 2.0; see LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
// Drives a flat module with vectors from standard input, a line each: input and expected output as hexadecimal
// numbers. Compares every output, in order. Macros: DUT, the class that Verilator made; DUT_HEADER, its header.
//
// usage: <program> [--pauses PERCENT] [--seed N]
//   --pauses   of cycles in which a stream rests, input and output each (default 0)
//
// Prints "events N cycles C mismatches 0"; at the first difference, the vector, and ends with status 1.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <type_traits>
#include <vector>

#include DUT_HEADER
#include "verilated.h"

namespace {

// Words of a port, whatever type Verilator chose for its width.
template <typename T>
struct Port {
  static size_t words() { return (sizeof(T) + 3) / 4; }
  static void set(T& port, const uint32_t* words) {
    if constexpr (std::is_integral_v<T>) {
      uint64_t value = words[0];
      if (sizeof(T) == 8) value |= static_cast<uint64_t>(words[1]) << 32;
      port = static_cast<T>(value);
    } else {
      for (size_t i = 0; i < sizeof(T) / 4; ++i) port[i] = words[i];
    }
  }
  static void get(const T& port, uint32_t* words) {
    if constexpr (std::is_integral_v<T>) {
      words[0] = static_cast<uint32_t>(port);
      if (sizeof(T) == 8) words[1] = static_cast<uint32_t>(static_cast<uint64_t>(port) >> 32);
    } else {
      for (size_t i = 0; i < sizeof(T) / 4; ++i) words[i] = port[i];
    }
  }
};

using In = std::remove_reference_t<decltype(std::declval<DUT>().data_i)>;
using Out = std::remove_reference_t<decltype(std::declval<DUT>().data_o)>;

constexpr size_t kMost = 96;
struct Words {
  uint32_t at[kMost];
};

uint64_t random_state = 1;
uint32_t random_below(uint32_t n) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return static_cast<uint32_t>((random_state >> 32) % n);
}

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// Reads a hexadecimal number that ends at `end`.
bool parse(const char* begin, const char* end, Words& words) {
  memset(&words, 0, sizeof words);
  size_t nibble = 0;
  for (const char* at = end; at != begin; ++nibble) {
    const int value = digit(*--at);
    if (value < 0 || nibble >= 8 * kMost) return false;
    words.at[nibble / 8] |= static_cast<uint32_t>(value) << (4 * (nibble % 8));
  }
  return nibble > 0;
}

std::string hex(const Words& words, size_t count) {
  std::string text;
  char buffer[9];
  for (size_t i = count; i > 0; --i) {
    snprintf(buffer, sizeof buffer, "%08x", words.at[i - 1]);
    text += buffer;
  }
  return text;
}

struct Vector {
  Words in, out;
};

}  // namespace

int main(int argc, char** argv) {
  uint32_t pauses = 0;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--pauses") pauses = static_cast<uint32_t>(atoi(argv[i + 1]));
    if (name == "--seed") random_state = strtoull(argv[i + 1], nullptr, 10) * 2 + 1;
  }

  DUT dut;
  dut.clk_i = 0;
  dut.rst_ni = 0;
  dut.valid_i = 0;
  dut.ready_i = 0;
  for (int i = 0; i < 4; ++i) {
    dut.clk_i = !dut.clk_i;
    dut.eval();
  }
  dut.rst_ni = 1;

  const size_t in_words = Port<In>::words(), out_words = Port<Out>::words();
  std::vector<char> line(16 * kMost + 64);
  size_t length = 0;
  std::deque<Vector> flying;
  Vector next;
  bool has_next = false, at_end = false, offered = false;
  uint64_t taken = 0, compared = 0, cycles = 0, idle = 0;
  while (true) {
    if (!has_next && !at_end) {
      if (fgets(line.data(), static_cast<int>(line.size()), stdin) == nullptr) {
        at_end = true;
      } else {
        char* space = strchr(line.data(), ' ');
        char* end = line.data() + strcspn(line.data(), "\r\n");
        // All have the same digits; one that was cut off would pass for another.
        if (length == 0) length = strlen(line.data());
        if (space == nullptr || strlen(line.data()) != length || !parse(line.data(), space, next.in) ||
            !parse(space + 1, end, next.out)) {
          fprintf(stderr, "error: vector %llu is not two hexadecimal numbers, or as long as others\n",
                  static_cast<unsigned long long>(taken + 1));
          return 2;
        }
        has_next = true;
      }
    }
    if (at_end && !has_next && flying.empty()) break;

    // A stream that is valid stays so until it is taken.
    if (!offered) offered = has_next && (pauses == 0 || random_below(100) >= pauses);
    dut.valid_i = offered;
    if (offered) Port<In>::set(dut.data_i, next.in.at);
    dut.ready_i = pauses == 0 || random_below(100) >= pauses;
    dut.clk_i = 0;
    dut.eval();
    const bool takes = dut.valid_i && dut.ready_o, gives = dut.valid_o && dut.ready_i;
    if (gives) {
      if (flying.empty()) {
        fprintf(stderr, "error: an output without an input behind event %llu\n",
                static_cast<unsigned long long>(compared));
        return 1;
      }
      Words got;
      memset(&got, 0, sizeof got);
      Port<Out>::get(dut.data_o, got.at);
      ++compared;
      if (memcmp(got.at, flying.front().out.at, 4 * out_words) != 0) {
        fprintf(stderr, "error: event %llu\n  input    %s\n  expected %s\n  got      %s\n",
                static_cast<unsigned long long>(compared), hex(flying.front().in, in_words).c_str(),
                hex(flying.front().out, out_words).c_str(), hex(got, out_words).c_str());
        return 1;
      }
      flying.pop_front();
    }
    if (takes) {
      flying.push_back(next);
      has_next = offered = false;
      ++taken;
    }
    idle = takes || gives ? 0 : idle + 1;
    if (idle > 10000) {
      fprintf(stderr, "error: nothing moves behind event %llu\n", static_cast<unsigned long long>(compared));
      return 1;
    }
    dut.clk_i = 1;
    dut.eval();
    ++cycles;
  }
  printf("events %llu cycles %llu mismatches 0\n", static_cast<unsigned long long>(compared),
         static_cast<unsigned long long>(cycles));
  return 0;
}
