// Copyright Selvedge contributors. Licensed under the Apache License, Version 2.0; see LICENSE.
// SPDX-License-Identifier: Apache-2.0

// timeout: extends exactly when it should; else the head waits to be sent again.
module prove_timeout
  import irn_pkg::*;
#(
  localparam int unsigned ContextBits = 4 * PsnBits + 3
) (
  input logic clk_i,
  input logic valid_i,
  input logic [PsnBits-1:0] low_packets_i,
  input logic [ContextBits-1:0] ctx_i,
  input logic ready_i
);

  `include "irn_timer.svh"

  logic rst_n;

  logic ready, valid, extend;
  timer_ctx_t prior, after;
  assign prior = timer_ctx_t'(ctx_i);

  timeout u_dut (
    .clk_i,
    .rst_ni(rst_n),
    .low_packets_i,
    .valid_i,
    .ready_o(ready),
    .ctx_i,
    .valid_o(valid),
    .ready_i,
    .extend_o(extend),
    .ctx_o(after)
  );

  logic taken_q, answered_q;
  logic [PsnBits-1:0] low_packets_q;
  timer_ctx_t prior_q, marked;

  first_event #(.Bits(PsnBits + ContextBits)) u_first (
    .clk_i,
    .rst_no(rst_n),
    .take_i(valid_i & ready),
    .event_i({low_packets_i, ctx_i}),
    .answer_i(valid & ready_i),
    .taken_o(taken_q),
    .answered_o(answered_q),
    .event_o({low_packets_q, prior_q})
  );

  logic [PsnBits-1:0] in_flight;
  assign in_flight = prior_q.next - prior_q.acked;

  always_comb begin
    marked = prior_q;
    marked.retransmit    = prior_q.acked;
    marked.do_retransmit = 1'b1;
    marked.find_new_hole = 1'b0;
    if (rst_n && valid && !answered_q) begin
      follows: assert (taken_q);
      extends_iff: assert (extend == (prior_q.quick && (in_flight > low_packets_q || prior_q.rate_factor > 4)));
      extended_changes_nothing: assert (!extend || after == prior_q);
      marks_the_head: assert (extend || after == marked);
    end
  end

  // It happens: the proofs above are not about nothing.
  always_comb begin
    is_extended: cover (rst_n && valid && !answered_q && extend);
    is_executed: cover (rst_n && valid && !answered_q && !extend && prior_q.quick);
  end

endmodule
