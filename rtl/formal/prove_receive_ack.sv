// Copyright Selvedge contributors. Licensed under the Apache License, Version 2.0; see LICENSE.
// SPDX-License-Identifier: Apache-2.0

// receive_ack: any acknowledgement, any sound context. The context is an input and nothing else is kept from one
// acknowledgement to the next, so what holds for one holds for any number.
module prove_receive_ack
  import irn_pkg::*;
#(
  parameter int unsigned W = 128,
  parameter bit Pipelined = 1'b1,
  localparam int unsigned ContextBits = 4 * PsnBits + W + 3,
  localparam int unsigned SlotBits = $clog2(W)
) (
  input logic clk_i,
  input logic valid_i,
  input logic nack_i,
  input logic [PsnBits-1:0] cum_ack_i,
  input logic [PsnBits-1:0] sack_i,
  input logic [ContextBits-1:0] ctx_i,
  input logic ready_i,
  // Any bit of the bitmap.
  input logic [SlotBits-1:0] probe_i
);

  `include "irn_sender.svh"
  `include "sender_invariants.svh"

  logic rst_n;

  logic ready, valid;
  sender_ctx_t prior, after;
  assign prior = sender_ctx_t'(ctx_i);

  receive_ack #(.W(W), .Pipelined(Pipelined)) u_dut (
    .clk_i,
    .rst_ni(rst_n),
    .valid_i,
    .ready_o(ready),
    .nack_i,
    .cum_ack_i,
    .sack_i,
    .ctx_i,
    .valid_o(valid),
    .ready_i,
    .ctx_o(after)
  );

  // The first acknowledgement is followed to its answer.
  logic taken_q, answered_q, nack_q;
  logic [PsnBits-1:0] cum_q, sack_q;
  logic [SlotBits-1:0] probe_q;
  sender_ctx_t prior_q;

  first_event #(.Bits(1 + 2 * PsnBits + SlotBits + ContextBits)) u_first (
    .clk_i,
    .rst_no(rst_n),
    .take_i(valid_i & ready),
    .event_i({nack_i, cum_ack_i, sack_i, probe_i, ctx_i}),
    .answer_i(valid & ready_i),
    .taken_o(taken_q),
    .answered_o(answered_q),
    .event_o({nack_q, cum_q, sack_q, probe_q, prior_q})
  );

  localparam logic [PsnBits-1:0] Reach = PsnBits'(1) << ReachBits;

  logic [PsnBits-1:0] advance, moved, sack_offset, in_flight;
  logic is_near, new_ack, recovered, has_sack, marks;
  // Where the probed bit was before the head moved.
  logic [31:0] source;

  assign advance     = cum_q - prior_q.acked;
  assign is_near     = advance < Reach || advance >= -Reach;
  assign new_ack     = is_near && advance != 0 && advance < Reach;
  assign moved       = after.acked - prior_q.acked;
  assign in_flight   = after.next - after.acked;
  assign sack_offset = sack_q - after.acked;
  assign has_sack    = is_near && nack_q && 32'(sack_offset) < W;
  assign recovered   = is_near && is_behind(prior_q.recover, cum_q);
  assign source      = 32'(probe_q) + 32'(moved);
  assign marks       = after.do_retransmit && after.retransmit == after.acked;

  always_comb begin
    if (valid_i) assume (is_sound(prior));
    if (rst_n && valid && !answered_q) begin
      follows: assert (taken_q);
      stays_sound: assert (is_sound(after));
      never_moves_back: assert (moved < Reach);
      moves_to_cum: assert (after.acked == (new_ack ? cum_q : prior_q.acked));
      next_is_not_behind: assert (in_flight <= PsnBits'(W));
      next_stays: assert (after.next == prior_q.next || after.next == after.acked);
      far_is_ignored: assert (is_near || after == prior_q);
      bitmap_moves: assert (after.sacks[probe_q] == ((source < W && prior_q.sacks[SlotBits'(source)])
          || (has_sack && sack_offset == PsnBits'(probe_q))));
      // Recovery begins with a retransmission, in tx_free, and ends when what it covers is acknowledged.
      never_enters: assert (prior_q.in_recovery || !after.in_recovery);
      leaves: assert (after.in_recovery == (prior_q.in_recovery && !recovered));
      // A packet newly waits to be sent again only if it is the head, ...
      starts_at_head: assert (!after.do_retransmit || is_behind(after.retransmit, after.acked) || marks ||
          (prior_q.do_retransmit && after.retransmit == prior_q.retransmit));
      // ... because of a partial acknowledgement or a NACK that tells nothing new outside recovery.
      starts_for_a_reason: assert (!marks || prior_q.do_retransmit || (new_ack && after.in_recovery) ||
          (!new_ack && !after.in_recovery && nack_q && is_near && in_flight != 0));
      nack_outside_recovery: assert (!(is_near && nack_q && !new_ack && !after.in_recovery && in_flight != 0) || marks);
      sacked_is_cancelled: assert (!(has_sack && prior_q.in_recovery && prior_q.do_retransmit &&
          sack_q == prior_q.retransmit && !new_ack) || !after.do_retransmit || marks);
    end
  end

  // It happens: the proofs above are not about nothing.
  logic is_answer;
  assign is_answer = rst_n && valid && !answered_q;
  always_comb begin
    recovery_ends: cover (is_answer && prior_q.in_recovery && !after.in_recovery);
    partial_acknowledgement: cover (is_answer && new_ack && after.in_recovery && marks);
    nack_marks_head: cover (is_answer && nack_q && !prior_q.do_retransmit && marks && !new_ack);
    search_is_due: cover (is_answer && after.find_new_hole && !prior_q.find_new_hole);
    bitmap_is_left_whole: cover (is_answer && |prior_q.sacks && moved > PsnBits'(W));
    far_acknowledgement: cover (is_answer && !is_near);
  end

endmodule
