// Copyright Selvedge contributors. Licensed under the Apache License, Version 2.0; see LICENSE.
// SPDX-License-Identifier: Apache-2.0

// Moves a bitmap's head forward: a shift to the right, the largest steps first, because a search knows these first.
// Zeros come in. Two of them, one behind the other, can have a register in between.
module shift_right #(
  parameter int unsigned Width = 128,
  parameter int unsigned AmountBits = 7,
  // The amount counts steps of 2^Scale bits.
  parameter int unsigned Scale = 0
) (
  input  logic [Width-1:0] bits_i,
  input  logic [AmountBits-1:0] amount_i,
  output logic [Width-1:0] bits_o
);

  always_comb begin
    bits_o = bits_i;
    for (int unsigned step = AmountBits; step > 0; step--) begin
      if (amount_i[step-1]) begin
        bits_o = bits_o >> (1 << (step - 1 + Scale));
      end
    end
  end

endmodule
