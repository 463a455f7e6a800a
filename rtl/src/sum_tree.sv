// Copyright Selvedge contributors. Licensed under the Apache License, Version 2.0; see LICENSE.
// SPDX-License-Identifier: Apache-2.0

// Sum of many small numbers, pair by pair. The adders are written as gates: at these widths, lookup tables are faster
// than carry chains.
module sum_tree #(
  // Numbers, at least 2.
  parameter int unsigned Count = 16,
  // Bits of each.
  parameter int unsigned InBits = 4,
  // Sums that are left over, a power of two.
  parameter int unsigned Sums = 2,
  // Bits of each sum.
  localparam int unsigned OutBits = InBits + $clog2(Count) - $clog2(Sums)
) (
  input  logic [Count-1:0][InBits-1:0] numbers_i,
  output logic [Sums-1:0][OutBits-1:0] sums_o
);

  localparam int unsigned Slots  = 1 << $clog2(Count);
  localparam int Levels = $clog2(Count) - $clog2(Sums);

  function automatic logic [OutBits-1:0] add(logic [OutBits-1:0] a, logic [OutBits-1:0] b);
    logic carry;
    carry = 1'b0;
    for (int unsigned i = 0; i < OutBits; i++) begin
      add[i] = a[i] ^ b[i] ^ carry;
      carry  = (a[i] & b[i]) | (carry & (a[i] ^ b[i]));
    end
  endfunction

  logic [Levels:0][Slots-1:0][OutBits-1:0] sums;

  always_comb begin
    sums = '0;
    for (int unsigned i = 0; i < Count; i++) begin
      sums[0][i] = OutBits'(numbers_i[i]);
    end
    for (int level = 0; level < Levels; level++) begin
      for (int unsigned i = 0; i < (Slots >> (level + 1)); i++) begin
        sums[level+1][i] = add(sums[level][2*i], sums[level][2*i+1]);
      end
    end
  end

  for (genvar i = 0; i < Sums; i++) begin : gen_out
    assign sums_o[i] = sums[Levels][i];
  end

endmodule
