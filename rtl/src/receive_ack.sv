// Copyright Selvedge contributors. Licensed under the Apache License, Version 2.0; see LICENSE.
// SPDX-License-Identifier: Apache-2.0

// An acknowledgement has arrived (IRN section 6.2, receiveAck): the queue pair's new context.
//
// 1. All differences are taken first, from the old head and from the new one; which of them count is known behind
//    them.
// 2. Whether a SACK is the highest is seen before the bitmap moves: bits above it keep their order.
module receive_ack
  import irn_pkg::*;
#(
  // Packets that the bitmap holds, a multiple of 16, at least 32.
  parameter int unsigned W = 128,
  // An acknowledgement per cycle, four cycles each; else one every four cycles, three cycles each, as in the paper.
  parameter bit Pipelined = 1'b1,
  localparam int unsigned ContextBits = 4 * PsnBits + W + 3
) (
  input  logic clk_i,
  input  logic rst_ni,

  input  logic valid_i,
  output logic ready_o,
  input  logic nack_i,
  // The next packet that the receiver expects.
  input  logic [PsnBits-1:0] cum_ack_i,
  // The packet that occasioned it.
  input  logic [PsnBits-1:0] sack_i,
  // A sender_ctx_t.
  input  logic [ContextBits-1:0] ctx_i,

  output logic valid_o,
  input  logic ready_i,
  output logic [ContextBits-1:0] ctx_o
);

  `include "irn_sender.svh"

  localparam int unsigned SlotBits = $clog2(W);
  // The bitmap moves in two parts: by multiples of 2^LowBits, then by the rest.
  localparam int unsigned LowBits = SlotBits / 2;
  localparam int unsigned HighBits = SlotBits - LowBits;
  localparam int unsigned Latency = latency(Pipelined);
  localparam int unsigned Interval = interval(Pipelined);

  logic en;

  stream_control #(.Latency(Latency), .Interval(Interval)) u_control (
    .clk_i, .rst_ni, .valid_i, .ready_o, .valid_o, .ready_i, .en_o(en)
  );

  // Step 1: differences.

  typedef struct packed {
    logic nack;
    logic [PsnBits-1:0] cum;
    logic [PsnBits-1:0] cum_minus;
    // From the head to what is acknowledged, signed; and whether they differ.
    logic [PsnBits-1:0] advance;
    logic advances;
    // The SACK's distance from the old head and from the new one.
    logic [PsnBits-1:0] from_old;
    logic [PsnBits-1:0] from_new;
    // From the new head, signed.
    logic [1:0] recover_ahead;
    logic [1:0] resent_ahead;
    logic is_beyond_next;
    logic is_recovered;
    logic sack_is_resent;
    logic resent_is_new_head;
    logic is_in_flight;
    sender_ctx_t ctx;
  } measured_t;

  sender_ctx_t ctx;
  measured_t measured, measured_q;
  logic [PsnBits-1:0] recover_ahead, resent_ahead, next_ahead;

  assign ctx           = sender_ctx_t'(ctx_i);
  assign recover_ahead = ctx.recover - cum_ack_i;
  assign resent_ahead  = ctx.retransmit - cum_ack_i;
  assign next_ahead    = ctx.next - cum_ack_i;

  assign measured.nack               = nack_i;
  assign measured.cum                = cum_ack_i;
  assign measured.cum_minus          = cum_ack_i - PsnBits'(1);
  assign measured.advance            = cum_ack_i - ctx.acked;
  assign measured.advances           = cum_ack_i != ctx.acked;
  assign measured.from_old           = sack_i - ctx.acked;
  assign measured.from_new           = sack_i - cum_ack_i;
  assign measured.recover_ahead      = recover_ahead[PsnBits-1:PsnBits-2];
  assign measured.resent_ahead       = resent_ahead[PsnBits-1:PsnBits-2];
  assign measured.is_beyond_next     = next_ahead[PsnBits-1];
  assign measured.is_recovered       = recover_ahead[PsnBits-1];
  assign measured.sack_is_resent     = sack_i == ctx.retransmit;
  assign measured.resent_is_new_head = ctx.retransmit == cum_ack_i;
  assign measured.is_in_flight       = ctx.next != ctx.acked;
  assign measured.ctx                = ctx;

  logic unused;
  assign unused = ^{next_ahead[PsnBits-2:0], recover_ahead[PsnBits-3:0], resent_ahead[PsnBits-3:0]};

  pipe_stage #(.Width($bits(measured_t))) u_measured (.clk_i, .en_i(en), .d_i(measured), .q_o(measured_q));

  // Step 2: what counts.

  typedef struct packed {
    logic nack;
    logic ignored;
    logic new_ack;
    logic is_recovered;
    logic sack_is_resent;
    logic resent_is_behind;
    logic resent_is_new_head;
    logic is_in_flight;
    // The SACK names a packet of the bitmap.
    logic has_sack;
    logic is_highest;
    logic [SlotBits-1:0] slot;
    logic [SlotBits-1:0] amount;
    sender_ctx_t ctx;
  } judged_t;

  judged_t judged, judged_q;
  logic is_near, new_ack, old_is_beyond;
  logic [PsnBits-1:0] distance;
  logic [W-1:0] higher;

  // Nothing is acknowledged from more than 2^22 packets away (policy 1).
  assign is_near  = measured_q.advance[PsnBits-1] == measured_q.advance[PsnBits-2];
  assign new_ack  = ~measured_q.advance[PsnBits-1] & ~measured_q.advance[PsnBits-2] & measured_q.advances;
  assign distance = new_ack ? measured_q.from_new : measured_q.from_old;

  assign judged.nack               = measured_q.nack & is_near;
  assign judged.ignored            = ~is_near;
  assign judged.new_ack            = new_ack;
  assign judged.is_recovered       = measured_q.is_recovered & is_near;
  assign judged.sack_is_resent     = measured_q.sack_is_resent;
  assign judged.resent_is_behind   = measured_q.resent_ahead[1];
  assign judged.resent_is_new_head = measured_q.resent_is_new_head;
  assign judged.is_in_flight       = measured_q.is_in_flight;
  assign judged.has_sack           = distance < PsnBits'(W);
  assign judged.slot               = distance[SlotBits-1:0];
  assign judged.amount             = measured_q.advance[SlotBits-1:0] & {SlotBits{new_ack}};

  // Set bits above the SACK, by its distance from the old head.
  assign old_is_beyond = |measured_q.from_old[PsnBits-1:SlotBits];
  assign higher[0] = 1'b0;
  for (genvar i = 1; i < W; i++) begin : gen_higher
    assign higher[i] = measured_q.ctx.sacks[i] & ~old_is_beyond & (measured_q.from_old[SlotBits-1:0] < SlotBits'(i));
  end
  assign judged.is_highest = ~|higher;

  // Pointers that fall too far behind come along.
  assign judged.ctx.next       = new_ack & measured_q.is_beyond_next ? measured_q.cum : measured_q.ctx.next;
  assign judged.ctx.acked      = new_ack ? measured_q.cum : measured_q.ctx.acked;
  assign judged.ctx.recover    = new_ack & (measured_q.recover_ahead == 2'b10) ? measured_q.cum_minus
      : measured_q.ctx.recover;
  assign judged.ctx.retransmit = new_ack & (measured_q.resent_ahead == 2'b10) ? measured_q.cum_minus
      : measured_q.ctx.retransmit;
  assign judged.ctx.do_retransmit = measured_q.ctx.do_retransmit;
  assign judged.ctx.in_recovery   = measured_q.ctx.in_recovery;
  assign judged.ctx.find_new_hole = measured_q.ctx.find_new_hole;
  // All bits are left behind by an advance of W or more.
  assign judged.ctx.sacks = measured_q.ctx.sacks & {W{~(new_ack & |measured_q.advance[PsnBits-1:SlotBits])}};

  pipe_stage #(.Width($bits(judged_t))) u_judged (.clk_i, .en_i(en), .d_i(judged), .q_o(judged_q));

  // Step 3: the flags, and the first part of the move.

  typedef struct packed {
    logic set_bit;
    logic [SlotBits-1:0] slot;
    logic [LowBits-1:0] amount;
    sender_ctx_t ctx;
  } decided_t;

  decided_t decided, decided_q;
  logic sacked, pending_sacked, search_sacked, leaves, pending, search, recovering, partial, starts, marks;

  assign sacked         = judged_q.nack & judged_q.has_sack & judged_q.ctx.in_recovery;
  assign pending_sacked = judged_q.ctx.do_retransmit & ~(sacked & judged_q.sack_is_resent);
  assign search_sacked  = judged_q.ctx.find_new_hole
      | (sacked & (judged_q.ctx.do_retransmit ? judged_q.sack_is_resent : judged_q.is_highest));
  assign leaves         = judged_q.is_recovered;
  assign pending        = pending_sacked & ~leaves;
  assign search         = search_sacked & ~leaves;
  assign recovering     = judged_q.ctx.in_recovery & ~leaves;
  assign partial        = judged_q.new_ack & recovering
      & (judged_q.resent_is_behind | (judged_q.resent_is_new_head & pending));
  assign starts         = ~judged_q.new_ack & ~recovering & judged_q.nack & judged_q.is_in_flight;
  assign marks          = (partial | starts) & ~judged_q.ignored;

  assign decided.set_bit    = judged_q.nack & judged_q.has_sack;
  assign decided.slot   = judged_q.slot;
  assign decided.amount = judged_q.amount[LowBits-1:0];

  assign decided.ctx.next          = judged_q.ctx.next;
  assign decided.ctx.acked         = judged_q.ctx.acked;
  assign decided.ctx.retransmit    = marks ? judged_q.ctx.acked : judged_q.ctx.retransmit;
  assign decided.ctx.recover       = judged_q.ctx.recover;
  assign decided.ctx.do_retransmit = pending | marks;
  assign decided.ctx.in_recovery   = recovering;
  assign decided.ctx.find_new_hole = search & ~(partial & marks);

  shift_right #(.Width(W), .AmountBits(HighBits), .Scale(LowBits)) u_high (
    .bits_i(judged_q.ctx.sacks),
    .amount_i(judged_q.amount[SlotBits-1:LowBits]),
    .bits_o(decided.ctx.sacks)
  );

  pipe_stage #(.Width($bits(decided_t)), .Cut(Pipelined)) u_decided (.clk_i, .en_i(en), .d_i(decided), .q_o(decided_q));

  // Step 4: the rest of the move, and the SACK's bit.

  sender_ctx_t noted, noted_q;
  logic [W-1:0] sacks;

  shift_right #(.Width(W), .AmountBits(LowBits)) u_low (
    .bits_i(decided_q.ctx.sacks),
    .amount_i(decided_q.amount),
    .bits_o(sacks)
  );

  always_comb begin
    noted = decided_q.ctx;
    for (int unsigned i = 0; i < W; i++) begin
      noted.sacks[i] = sacks[i] | (decided_q.set_bit & (decided_q.slot == SlotBits'(i)));
    end
  end

  pipe_stage #(.Width($bits(sender_ctx_t))) u_noted (.clk_i, .en_i(en), .d_i(noted), .q_o(noted_q));

  assign ctx_o = noted_q;

endmodule
