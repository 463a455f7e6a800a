// Copyright Selvedge contributors. Licensed under the Apache License, Version 2.0; see LICENSE.
// SPDX-License-Identifier: Apache-2.0

// receive_data: any packet, any context whose head is clear. The context is an input and nothing else is kept from one
// packet to the next, so what holds for one packet holds for any number.
module prove_receive_data
  import irn_pkg::*;
#(
  parameter int unsigned W = 128,
  parameter bit Pipelined = 1'b1,
  localparam int unsigned ContextBits = 2 * PsnBits + 2 * W,
  localparam int unsigned SlotBits = $clog2(W),
  localparam int unsigned CountBits = $clog2(W + 1)
) (
  input logic clk_i,
  input logic valid_i,
  input logic [4:0] opcode_i,
  input logic [PsnBits-1:0] psn_i,
  input logic [ContextBits-1:0] ctx_i,
  input logic ready_i,
  // Any bit of the bitmaps.
  input logic [SlotBits-1:0] probe_i
);

  `include "irn_receiver.svh"

  logic rst_n;

  logic ready, valid, nack;
  logic [PsnBits-1:0] cum_ack, msn, sack;
  logic [CountBits-1:0] cqes;
  receiver_ctx_t prior, after;
  assign prior = receiver_ctx_t'(ctx_i);

  receive_data #(.W(W), .Pipelined(Pipelined)) u_dut (
    .clk_i,
    .rst_ni(rst_n),
    .valid_i,
    .ready_o(ready),
    .opcode_i,
    .psn_i,
    .ctx_i,
    .valid_o(valid),
    .ready_i,
    .nack_o(nack),
    .cum_ack_o(cum_ack),
    .msn_o(msn),
    .sack_o(sack),
    .cqes_o(cqes),
    .ctx_o(after)
  );

  // The first packet is followed to its answer.
  logic taken_q, answered_q;
  logic [4:0] opcode_q;
  logic [PsnBits-1:0] psn_q;
  logic [SlotBits-1:0] probe_q;
  receiver_ctx_t prior_q;

  first_event #(.Bits(5 + PsnBits + SlotBits + ContextBits)) u_first (
    .clk_i,
    .rst_no(rst_n),
    .take_i(valid_i & ready),
    .event_i({opcode_i, psn_i, probe_i, ctx_i}),
    .answer_i(valid & ready_i),
    .taken_o(taken_q),
    .answered_o(answered_q),
    .event_o({opcode_q, psn_q, probe_q, prior_q})
  );

  logic [PsnBits-1:0] ahead, moved;
  logic is_next, was_arrived, is_arrived;
  logic [1:0] code;
  logic [W-1:0] arrived;
  // Where the probed bit was before the head moved.
  logic [31:0] source;

  assign ahead   = psn_q - prior_q.expected;
  assign moved   = after.expected - prior_q.expected;
  assign is_next = ahead == '0;
  assign code    = arrival_of_opcode(opcode_q);
  assign arrived = prior_q.map1 | prior_q.map2;
  assign source  = 32'(probe_q) + 32'(moved);

  logic [W-1:0] now_arrived;
  assign now_arrived   = after.map1 | after.map2;
  assign was_arrived   = 32'(ahead) < W && arrived[ahead[SlotBits-1:0]];
  assign is_arrived    = now_arrived[ahead[SlotBits-1:0]];

  always_comb begin
    // A bitmap's head is clear, before and after.
    if (valid_i) assume (!prior.map1[0] && !prior.map2[0]);
    if (rst_n && valid && !answered_q) begin
      follows: assert (taken_q);
      head_is_clear: assert (!after.map1[0] && !after.map2[0]);
      says_what_it_keeps: assert (cum_ack == after.expected && msn == after.msn && sack == psn_q);
      nack_iff_ahead: assert (nack == (!is_next && !ahead[PsnBits-1]));
      moves_iff_next: assert (is_next ? (moved >= 1 && 32'(moved) <= W) : moved == 0);
      // All that the head passes had arrived; what it stops at had not.
      passes_arrived: assert (!is_next || probe_q == 0 || PsnBits'(probe_q) >= moved || arrived[probe_q]);
      stops_at_missing: assert (!is_next || 32'(moved) == W || !arrived[moved[SlotBits-1:0]]);
      keeps_the_rest: assert (!is_next ||
          (after.map1[probe_q] == (source < W && prior_q.map1[SlotBits'(source)]) &&
           after.map2[probe_q] == (source < W && prior_q.map2[SlotBits'(source)])));
      records: assert (is_next || ahead[PsnBits-1] || 32'(ahead) >= W || is_arrived);
      first_wins: assert (is_next || !was_arrived ||
          (after.map1 == prior_q.map1 && after.map2 == prior_q.map2));
      nothing_else: assert (is_next || probe_q == ahead[SlotBits-1:0] ||
          (after.map1[probe_q] == prior_q.map1[probe_q] && after.map2[probe_q] == prior_q.map2[probe_q]));
      beyond_is_not_kept: assert (is_next || 32'(ahead) < W ||
          (after.map1 == prior_q.map1 && after.map2 == prior_q.map2));
    end
  end

  // Of the packets before the new head, those that ended messages. Two ways to add many bits at once are hard to
  // compare for a solver: for wider bitmaps, prove_functions.sv and prove_sum_tree.sv prove the parts.
  if (W <= 32) begin : gen_counts
    logic [W-1:0] left, left_messages, left_receives;
    logic [CountBits-1:0] messages, receives;

    assign left          = ~({W{1'b1}} << moved);
    assign left_messages = prior_q.map2 & left;
    assign left_receives = prior_q.map1 & prior_q.map2 & left;
    always_comb begin
      messages = CountBits'(is_next && code[1]);
      receives = CountBits'(is_next && code == 2'b11);
      for (int unsigned i = 0; i < W; i++) begin
        messages += CountBits'(left_messages[i]);
        receives += CountBits'(left_receives[i]);
      end
      if (rst_n && valid && !answered_q) begin
        msn_counts: assert (after.msn == prior_q.msn + PsnBits'(messages));
        cqes_count: assert (cqes == receives);
      end
    end
  end

  // It happens: the proofs above are not about nothing.
  logic is_answer;
  assign is_answer = rst_n && valid && !answered_q;
  always_comb begin
    whole_bitmap_leaves: cover (is_answer && is_next && 32'(moved) == W);
    many_cqes: cover (is_answer && 32'(cqes) > W / 2);
    repeated_packet: cover (is_answer && !is_next && was_arrived);
    beyond_bitmap: cover (is_answer && nack && 32'(ahead) >= W);
    head_wraps: cover (is_answer && after.expected < prior_q.expected);
  end

endmodule
