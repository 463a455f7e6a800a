// Copyright Selvedge contributors. Licensed under the Apache License, Version 2.0; see LICENSE.
// SPDX-License-Identifier: Apache-2.0

// stream_control: as many outputs as inputs, in time, none before its input; an output stays until it is taken; inputs
// keep their distance. By k-induction, for any number of cycles.
module prove_stream_control #(
  parameter int unsigned Latency = 3,
  parameter int unsigned Interval = 4
) (
  input logic clk_i,
  input logic valid_i,
  input logic ready_i
);

  logic rst_n = 1'b0;
  always_ff @(posedge clk_i) rst_n <= 1'b1;

  logic ready, valid, en;

  stream_control #(.Latency(Latency), .Interval(Interval)) u_dut (
    .clk_i,
    .rst_ni(rst_n),
    .valid_i,
    .ready_o(ready),
    .valid_o(valid),
    .ready_i,
    .en_o(en)
  );

  // Inputs under way, by when they were taken in cycles that advanced; and advances since the last input.
  logic [Latency-1:0] flying_q = '0;
  int unsigned since_q = Interval;
  logic held_q = 1'b0;

  always_ff @(posedge clk_i) begin
    if (rst_n) begin
      if (en) begin
        flying_q <= Latency'({flying_q, valid_i & ready});
        since_q  <= valid_i & ready ? 1 : since_q < Interval ? since_q + 1 : since_q;
      end
      held_q <= valid & ~ready_i;
    end
  end

  always_comb begin
    if (rst_n) begin
      // Invariant: the module's own state says the same.
      state: assert (u_dut.valid_q == flying_q);
      output_per_input: assert (valid == flying_q[Latency-1]);
      stays_valid: assert (!held_q || valid);
      advances_iff: assert (en == (!valid || ready_i));
      keeps_distance: assert (!(valid_i && ready) || since_q >= Interval);
      waits: assert (since_q >= 1 && since_q <= Interval);
      never_waits_longer: assert (!en || since_q < Interval || ready);
    end
  end

  if (Interval > 1) begin : gen_wait
    always_comb begin
      if (rst_n) waiting_state: assert (32'(u_dut.gen_interval.wait_q) == Interval - since_q);
    end
  end

endmodule
