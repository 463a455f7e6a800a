// Copyright Selvedge contributors. Licensed under the Apache License, Version 2.0; see LICENSE.
// SPDX-License-Identifier: Apache-2.0

// Number of ones among eight bits, from two halves of four; without carry chains.
module count_ones8 (
  input  logic [7:0] bits_i,
  output logic [3:0] count_o
);

  function automatic logic [2:0] of_four(logic [3:0] bits);
    logic two_low, two_high;
    two_low  = bits[0] & bits[1];
    two_high = bits[2] & bits[3];
    of_four[0] = ^bits;
    of_four[2] = two_low & two_high;
    of_four[1] = (two_low ^ two_high) | ((bits[0] ^ bits[1]) & (bits[2] ^ bits[3]));
  endfunction

  logic [2:0] low, high;
  logic carry0, carry1;

  assign low  = of_four(bits_i[3:0]);
  assign high = of_four(bits_i[7:4]);

  assign count_o[0] = low[0] ^ high[0];
  assign carry0     = low[0] & high[0];
  assign count_o[1] = low[1] ^ high[1] ^ carry0;
  assign carry1     = (low[1] & high[1]) | (carry0 & (low[1] ^ high[1]));
  assign count_o[2] = low[2] ^ high[2] ^ carry1;
  assign count_o[3] = (low[2] & high[2]) | (carry1 & (low[2] ^ high[2]));

endmodule
