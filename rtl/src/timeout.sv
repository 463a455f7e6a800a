// Copyright Selvedge contributors. Licensed under the Apache License, Version 2.0; see LICENSE.
// SPDX-License-Identifier: Apache-2.0

// A queue pair's timer has fired (IRN section 6.2, timeout): extend it to RTO_high, or send from the head again. One
// cycle, a timeout per cycle.
module timeout
  import irn_pkg::*;
#(
  localparam int unsigned ContextBits = 4 * PsnBits + 3
) (
  input  logic clk_i,
  input  logic rst_ni,

  // N of section 3.1: RTO_low holds for at most this many packets in flight. All queue pairs share it.
  input  logic [PsnBits-1:0] low_packets_i,

  input  logic valid_i,
  output logic ready_o,
  // A timer_ctx_t.
  input  logic [ContextBits-1:0] ctx_i,

  output logic valid_o,
  input  logic ready_i,
  // Nothing is done; the timer is set to RTO_high, measured from the same start.
  output logic extend_o,
  output logic [ContextBits-1:0] ctx_o
);

  `include "irn_timer.svh"

  typedef struct packed {
    logic extend;
    timer_ctx_t ctx;
  } decided_t;

  logic en, extend;
  logic [PsnBits-1:0] in_flight;
  timer_ctx_t ctx;
  decided_t decided, decided_q;

  stream_control #(.Latency(1), .Interval(1)) u_control (
    .clk_i, .rst_ni, .valid_i, .ready_o, .valid_o, .ready_i, .en_o(en)
  );

  assign ctx       = timer_ctx_t'(ctx_i);
  assign in_flight = ctx.next - ctx.acked;
  assign extend    = ctx.quick & ((ctx.rate_factor > PsnBits'(RateFactorLimit)) | (in_flight > low_packets_i));

  always_comb begin
    decided.extend = extend;
    decided.ctx    = ctx;
    if (!extend) begin
      decided.ctx.retransmit    = ctx.acked;
      decided.ctx.do_retransmit = 1'b1;
      decided.ctx.find_new_hole = 1'b0;
    end
  end

  pipe_stage #(.Width($bits(decided_t))) u_decided (.clk_i, .en_i(en), .d_i(decided), .q_o(decided_q));

  assign extend_o = decided_q.extend;
  assign ctx_o    = decided_q.ctx;

endmodule
