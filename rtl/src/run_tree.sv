// Copyright Selvedge contributors. Licensed under the Apache License, Version 2.0; see LICENSE.
// SPDX-License-Identifier: Apache-2.0

// Combines the groups of `run_group`: where the unbroken run of ones of a whole bitmap ends.
module run_tree #(
  // Number of groups, at least 2.
  parameter int unsigned Groups = 16,
  localparam int unsigned IndexBits = $clog2(Groups)
) (
  input  logic [Groups-1:0] full_i,
  input  logic [Groups-1:0][2:0] length_i,
  // Every bit of every group is one.
  output logic all_o,
  // The group in which the run ends, 0 if all_o.
  output logic [IndexBits-1:0] group_o,
  // Length of the run within that group, 0 if all_o.
  output logic [2:0] length_o,
  // All groups before this one are full: their runs, and this one's, belong to the run.
  output logic [Groups-1:0] reached_o
);

  logic [Groups-1:0] prefix;
  logic [Groups-1:0] ends;

  always_comb begin
    prefix = full_i;
    for (int unsigned step = 1; step < Groups; step *= 2) begin
      for (int unsigned g = Groups - 1; g >= step; g--) begin
        prefix[g] = prefix[g] & prefix[g-step];
      end
    end
  end

  assign all_o     = prefix[Groups-1];
  assign reached_o = {prefix[Groups-2:0], 1'b1};
  assign ends      = reached_o & ~full_i;

  always_comb begin
    group_o  = '0;
    length_o = '0;
    for (int unsigned g = 0; g < Groups; g++) begin
      group_o  |= IndexBits'(g) & {IndexBits{ends[g]}};
      length_o |= length_i[g] & {3{ends[g]}};
    end
  end

endmodule
