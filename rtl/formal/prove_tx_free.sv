// Copyright Selvedge contributors. Licensed under the Apache License, Version 2.0; see LICENSE.
// SPDX-License-Identifier: Apache-2.0

// tx_free: any sound context, any cap up to W. The context is an input and nothing else is kept from one call to the
// next, so what holds for one call holds for any number.
module prove_tx_free
  import irn_pkg::*;
#(
  parameter int unsigned W = 128,
  parameter bit Pipelined = 1'b1,
  localparam int unsigned ContextBits = 4 * PsnBits + W + 3,
  localparam int unsigned SlotBits = $clog2(W)
) (
  input logic clk_i,
  input logic valid_i,
  input logic [PsnBits-1:0] cap_i,
  input logic has_limit_i,
  input logic [PsnBits-1:0] limit_i,
  input logic [ContextBits-1:0] ctx_i,
  input logic ready_i,
  // Any bit of the bitmap.
  input logic [SlotBits-1:0] probe_i
);

  `include "irn_sender.svh"
  `include "sender_invariants.svh"

  logic rst_n;

  logic ready, valid, send;
  logic [PsnBits-1:0] psn;
  sender_ctx_t prior, after;
  assign prior = sender_ctx_t'(ctx_i);

  tx_free #(.W(W), .Pipelined(Pipelined)) u_dut (
    .clk_i,
    .rst_ni(rst_n),
    .cap_i,
    .valid_i,
    .ready_o(ready),
    .has_limit_i,
    .limit_i,
    .ctx_i,
    .valid_o(valid),
    .ready_i,
    .send_o(send),
    .psn_o(psn),
    .ctx_o(after)
  );

  // The first call is followed to its answer.
  logic taken_q, answered_q, has_limit_q;
  logic [PsnBits-1:0] cap_q, limit_q;
  logic [SlotBits-1:0] probe_q;
  sender_ctx_t prior_q;

  first_event #(.Bits(1 + 2 * PsnBits + SlotBits + ContextBits)) u_first (
    .clk_i,
    .rst_no(rst_n),
    .take_i(valid_i & ready),
    .event_i({cap_i, has_limit_i, limit_i, probe_i, ctx_i}),
    .answer_i(valid & ready_i),
    .taken_o(taken_q),
    .answered_o(answered_q),
    .event_o({cap_q, has_limit_q, limit_q, probe_q, prior_q})
  );

  logic [PsnBits-1:0] offset, in_flight, to_limit, hole, from;
  logic pending, is_new;

  assign offset    = psn - prior_q.acked;
  assign in_flight = prior_q.next - prior_q.acked;
  assign to_limit  = prior_q.next - limit_q;
  assign pending   = prior_q.do_retransmit && !is_behind(prior_q.retransmit, prior_q.acked);
  assign is_new    = send && !pending;
  assign hole      = after.retransmit - after.acked;
  // The search begins behind the packet sent again last.
  assign from      = is_behind(prior_q.retransmit, prior_q.acked) ? '0
      : prior_q.retransmit - prior_q.acked + PsnBits'(1);

  always_comb begin
    if (valid_i) assume (is_sound(prior) && cap_i >= 1 && cap_i <= PsnBits'(W));
    if (rst_n && valid && !answered_q) begin
      follows: assert (taken_q);
      stays_sound: assert (is_sound(after));
      retransmission_first: assert (!pending || (send && psn == prior_q.retransmit));
      // Nothing acknowledged is offered; of SACKed packets only the head, which a NACK or a timeout names.
      never_acknowledged: assert (!send || 32'(offset) <= W);
      never_sacked: assert (!send || offset == 0 || !pending || !is_sacked(prior_q.sacks, offset));
      never_beyond_cap: assert (!is_new || (psn == prior_q.next && in_flight < cap_q));
      never_beyond_limit: assert (!is_new || !has_limit_q || to_limit[PsnBits-1]);
      never_idle: assert (send || in_flight >= cap_q || (has_limit_q && !to_limit[PsnBits-1]));
      next_counts: assert (after.next == prior_q.next + PsnBits'(is_new));
      head_stays: assert (after.acked == prior_q.acked && after.sacks == prior_q.sacks);
      recover_is_latched: assert (after.recover == (pending ? prior_q.next - PsnBits'(1) : prior_q.recover));
      enters_recovery: assert (after.in_recovery == (prior_q.in_recovery ||
          (pending && prior_q.retransmit == prior_q.acked)));
      searched: assert (!after.find_new_hole);
      no_search: assert (pending || prior_q.find_new_hole || !after.do_retransmit);
      // What was found is the first clear bit from there on, and has a set one above it.
      found_is_clear: assert (!after.do_retransmit || (32'(hole) < W && hole >= from &&
          !after.sacks[hole[SlotBits-1:0]]));
      found_is_first: assert (!after.do_retransmit || PsnBits'(probe_q) < from || PsnBits'(probe_q) >= hole ||
          after.sacks[probe_q]);
      found_has_sack: assert (!after.do_retransmit || |(after.sacks >> hole >> 1));
      // None is overlooked: a clear bit at or behind the begin with a set one above it.
      none_is_left: assert (after.do_retransmit || !(pending || prior_q.find_new_hole) ||
          PsnBits'(probe_q) < from || after.sacks[probe_q] || ~|(after.sacks >> probe_q));
    end
  end

  // Contexts are sound from the first one on, whatever its PSN; and a timer that fires (see prove_timeout) leaves a
  // sound one sound.
  sender_ctx_t first, marked;

  always_comb begin
    first = '{next: limit_i, acked: limit_i, retransmit: limit_i, recover: limit_i, default: '0};
    marked = prior;
    marked.retransmit    = prior.acked;
    marked.do_retransmit = 1'b1;
    marked.find_new_hole = 1'b0;
    first_is_sound: assert (is_sound(first));
    timer_keeps_sound: assert (!is_sound(prior) || is_sound(marked));
  end

  // It happens: the proofs above are not about nothing. That a packet behind the head waits to be sent again cannot
  // (sender_invariants.svh), so there is no situation in which it is dropped.
  logic is_answer;
  assign is_answer = rst_n && valid && !answered_q;
  always_comb begin
    recovery_begins: cover (is_answer && !prior_q.in_recovery && after.in_recovery);
    hole_is_found: cover (is_answer && after.do_retransmit && hole > PsnBits'(W / 2));
    hole_is_sent: cover (is_answer && pending && offset != '0);
    cap_binds: cover (is_answer && !send && in_flight >= cap_q);
    limit_binds: cover (is_answer && !send && in_flight < cap_q);
    new_before_hole: cover (is_answer && is_new && after.do_retransmit);
  end

endmodule
