// Copyright Selvedge contributors. Licensed under the Apache License, Version 2.0; see LICENSE.
// SPDX-License-Identifier: Apache-2.0

// Find-first-zero, count and shift against their one-line specifications, for every input.
module prove_functions #(
  parameter int unsigned W = 128,
  localparam int unsigned Groups = W / 8,
  localparam int unsigned GroupBits = $clog2(Groups),
  localparam int unsigned SlotBits = $clog2(W)
) (
  input logic clk_i,
  input logic [W-1:0] bits_i,
  input logic [SlotBits-1:0] amount_i,
  // Any bit of the bitmap.
  input logic [SlotBits-1:0] probe_i
);

  logic [Groups-1:0] full, reached;
  logic [Groups-1:0][2:0] length;
  logic [W-1:0] mask;
  logic [Groups-1:0][3:0] counts;
  logic all;
  logic [GroupBits-1:0] group_index;
  logic [2:0] rest;
  logic [SlotBits-1:0] first_zero;
  logic [0:0][GroupBits+3:0] sum;
  logic [W-1:0] high, shifted;
  localparam int unsigned LowBits = SlotBits / 2;

  for (genvar g = 0; g < Groups; g++) begin : gen_groups
    run_group u_run (
      .bits_i(bits_i[8*g+:8]),
      .full_o(full[g]),
      .length_o(length[g]),
      .mask_o(mask[8*g+:8])
    );
    count_ones8 u_count (
      .bits_i(bits_i[8*g+:8]),
      .count_o(counts[g])
    );
  end

  run_tree #(.Groups(Groups)) u_tree (
    .full_i(full),
    .length_i(length),
    .all_o(all),
    .group_o(group_index),
    .length_o(rest),
    .reached_o(reached)
  );
  assign first_zero = SlotBits'({group_index, rest});

  sum_tree #(.Count(Groups), .InBits(4), .Sums(1)) u_sum (
    .numbers_i(counts),
    .sums_o(sum)
  );

  shift_right #(.Width(W), .AmountBits(SlotBits - LowBits), .Scale(LowBits)) u_high (
    .bits_i(bits_i),
    .amount_i(amount_i[SlotBits-1:LowBits]),
    .bits_o(high)
  );
  shift_right #(.Width(W), .AmountBits(LowBits)) u_low (
    .bits_i(high),
    .amount_i(amount_i[LowBits-1:0]),
    .bits_o(shifted)
  );

  logic [31:0] source;
  assign source = 32'(probe_i) + 32'(amount_i);

  always_comb begin
    // The run: all ones below, a zero at its end.
    first_zero_all: assert (all == &bits_i);
    first_zero_ends: assert (all || !bits_i[first_zero]);
    first_zero_below: assert (all || probe_i >= first_zero || bits_i[probe_i]);
    // A packet belongs to the run if its group is reached and its own group's run holds it.
    run_mask: assert (all || 32'(probe_i) >= W ||
        (reached[probe_i[SlotBits-1:3]] && mask[probe_i]) == (probe_i < first_zero));
    // Any bit of what is shifted: a whole bitmap at once is hard for a solver if W is large.
    shift: assert (shifted[probe_i] == (source < W && bits_i[SlotBits'(source)]));
  end

  // Ones in a group of eight. That the tree adds is proved in prove_sum_tree.sv: two ways to add many bits at once are
  // hard to compare for a solver.
  for (genvar g = 0; g < Groups; g++) begin : gen_popcount
    always_comb begin
      popcount_of_group: assert (int'(counts[g]) == $countones(bits_i[8*g+:8]));
    end
  end

  if (W <= 32) begin : gen_whole
    always_comb begin
      popcount: assert (int'(sum[0]) == $countones(bits_i));
    end
  end

endmodule
