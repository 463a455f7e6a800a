// Copyright Selvedge contributors. Licensed under the Apache License, Version 2.0; see LICENSE.
// SPDX-License-Identifier: Apache-2.0

// sum_tree: every addition of the tree by itself, for any numbers; none overflows. Together they say that what is left
// over is the sum of all numbers, because additions may be grouped at will. Compared at once, two ways to add many
// numbers are hard for a solver.
module prove_sum_tree #(
  parameter int unsigned Count = 16,
  parameter int unsigned InBits = 4,
  // The largest of the numbers: a group of eight has at most eight ones.
  parameter int unsigned Largest = 8,
  parameter int unsigned Sums = 1,
  localparam int unsigned Slots = 1 << $clog2(Count),
  localparam int unsigned Levels = $clog2(Count) - $clog2(Sums),
  localparam int unsigned Bits = InBits + Levels
) (
  input logic clk_i,
  input logic [Count-1:0][InBits-1:0] numbers_i
);

  logic [Sums-1:0][Bits-1:0] sums;

  sum_tree #(.Count(Count), .InBits(InBits), .Sums(Sums)) u_dut (
    .numbers_i,
    .sums_o(sums)
  );

  for (genvar i = 0; i < Slots; i++) begin : gen_leaves
    always_comb begin
      if (i < Count) begin
        assume (32'(numbers_i[i]) <= Largest);
        leaf: assert (u_dut.sums[0][i] == Bits'(numbers_i[i]));
      end else begin
        leaf_none: assert (u_dut.sums[0][i] == '0);
      end
    end
  end

  for (genvar level = 0; level < Levels; level++) begin : gen_levels
    for (genvar i = 0; i < (Slots >> (level + 1)); i++) begin : gen_sums
      logic [Bits-1:0] a, b;
      assign a = u_dut.sums[level][2*i];
      assign b = u_dut.sums[level][2*i+1];
      always_comb begin
        adds: assert (u_dut.sums[level+1][i] == a + b);
        bounded: assert (32'(u_dut.sums[level+1][i]) <= (Largest << (level + 1)));
      end
    end
  end

  for (genvar i = 0; i < Sums; i++) begin : gen_last
    always_comb begin
      last: assert (sums[i] == u_dut.sums[Levels][i]);
    end
  end

endmodule
