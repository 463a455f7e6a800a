// Copyright Selvedge contributors. Licensed under the Apache License, Version 2.0; see LICENSE.
// SPDX-License-Identifier: Apache-2.0

// The link is free for a queue pair (IRN section 6.2, txFree): which packet it sends, if any, and its new context. In
// recovery, the next hole is sought at once.
//
// 1. A packet that waits to be sent again goes first, whatever the cap. Else a new one, while fewer than the cap are
//    in flight and the limit is not reached.
// 2. A hole is a clear bit of the SACK bitmap behind the last retransmission with a set bit above it.
module tx_free
  import irn_pkg::*;
#(
  // Packets that the bitmap holds, a multiple of 16, at least 32.
  parameter int unsigned W = 128,
  // A call per cycle, four cycles each; else one every four cycles, three cycles each, as in the paper.
  parameter bit Pipelined = 1'b1,
  localparam int unsigned ContextBits = 4 * PsnBits + W + 3
) (
  input  logic clk_i,
  input  logic rst_ni,

  // BDP-FC: new packets are sent while fewer than this are in flight, 1 to W. All queue pairs share it.
  input  logic [PsnBits-1:0] cap_i,

  input  logic valid_i,
  output logic ready_o,
  // New packets lie before limit_i (policy 5).
  input  logic has_limit_i,
  input  logic [PsnBits-1:0] limit_i,
  // A sender_ctx_t.
  input  logic [ContextBits-1:0] ctx_i,

  output logic valid_o,
  input  logic ready_i,
  // psn_o is sent; else nothing is, and psn_o is 0.
  output logic send_o,
  output logic [PsnBits-1:0] psn_o,
  output logic [ContextBits-1:0] ctx_o
);

  `include "irn_sender.svh"

  localparam int unsigned Groups = W / 8;
  localparam int unsigned GroupBits = $clog2(Groups);
  localparam int unsigned SlotBits = $clog2(W);
  localparam int unsigned Latency = latency(Pipelined);
  localparam int unsigned Interval = interval(Pipelined);

  logic en;

  stream_control #(.Latency(Latency), .Interval(Interval)) u_control (
    .clk_i, .rst_ni, .valid_i, .ready_o, .valid_o, .ready_i, .en_o(en)
  );

  // Step 1: differences.

  typedef struct packed {
    sender_ctx_t ctx;
    // From the head to the packet sent again last, signed.
    logic [PsnBits-1:0] resent;
    logic resent_is_head;
    logic [PsnBits-1:0] next_plus;
    logic [PsnBits-1:0] next_minus;
    logic has_room;
    logic is_before_limit;
  } measured_t;

  sender_ctx_t ctx;
  measured_t measured, measured_q;
  logic [PsnBits-1:0] in_flight, to_limit;

  assign ctx       = sender_ctx_t'(ctx_i);
  assign in_flight = ctx.next - ctx.acked;
  assign to_limit  = ctx.next - limit_i;

  assign measured.ctx             = ctx;
  assign measured.resent          = ctx.retransmit - ctx.acked;
  assign measured.resent_is_head  = ctx.retransmit == ctx.acked;
  assign measured.next_plus       = ctx.next + PsnBits'(1);
  assign measured.next_minus      = ctx.next - PsnBits'(1);
  assign measured.has_room        = in_flight < cap_i;
  assign measured.is_before_limit = to_limit[PsnBits-1] | ~has_limit_i;

  pipe_stage #(.Width($bits(measured_t))) u_measured (.clk_i, .en_i(en), .d_i(measured), .q_o(measured_q));

  // Step 2: what is sent, and the groups of the bitmap with everything up to the last retransmission filled in.

  typedef struct packed {
    logic send;
    logic [PsnBits-1:0] psn;
    logic search;
    sender_ctx_t ctx;
    logic [Groups-1:0] full;
    logic [Groups-1:0][2:0] length;
    // The group has a set bit.
    logic [Groups-1:0] any;
    // The group has a set bit above a clear one.
    logic [Groups-1:0] hole;
  } chosen_t;

  chosen_t chosen, chosen_q;
  logic again, fresh, resent_is_behind, resent_is_beyond;
  logic [W-1:0] filled;

  assign resent_is_behind = measured_q.resent[PsnBits-1];
  assign resent_is_beyond = |measured_q.resent[PsnBits-2:SlotBits];
  assign again = measured_q.ctx.do_retransmit & ~resent_is_behind;
  assign fresh = ~again & measured_q.has_room & measured_q.is_before_limit;

  assign chosen.send   = again | fresh;
  assign chosen.psn    = (measured_q.ctx.retransmit & {PsnBits{again}}) | (measured_q.ctx.next & {PsnBits{fresh}});
  assign chosen.search = again | measured_q.ctx.find_new_hole;

  assign chosen.ctx.next          = fresh ? measured_q.next_plus : measured_q.ctx.next;
  assign chosen.ctx.acked         = measured_q.ctx.acked;
  assign chosen.ctx.retransmit    = measured_q.ctx.retransmit;
  // Latched anew by every retransmission.
  assign chosen.ctx.recover       = again ? measured_q.next_minus : measured_q.ctx.recover;
  assign chosen.ctx.sacks         = measured_q.ctx.sacks;
  assign chosen.ctx.do_retransmit = 1'b0;
  assign chosen.ctx.in_recovery   = measured_q.ctx.in_recovery | (again & measured_q.resent_is_head);
  assign chosen.ctx.find_new_hole = 1'b0;

  assign filled[0] = measured_q.ctx.sacks[0] | ~resent_is_behind;
  for (genvar i = 1; i < W; i++) begin : gen_filled
    assign filled[i] = measured_q.ctx.sacks[i] | (~resent_is_behind &
        (resent_is_beyond | (measured_q.resent[SlotBits-1:0] >= SlotBits'(i))));
  end

  for (genvar g = 0; g < Groups; g++) begin : gen_groups
    logic [7:0] run;
    run_group u_run (
      .bits_i(filled[8*g+:8]),
      .full_o(chosen.full[g]),
      .length_o(chosen.length[g]),
      .mask_o(run)
    );
    assign chosen.any[g]  = |filled[8*g+:8];
    assign chosen.hole[g] = |(filled[8*g+:8] & ~run);
  end

  pipe_stage #(.Width($bits(chosen_t))) u_chosen (.clk_i, .en_i(en), .d_i(chosen), .q_o(chosen_q));

  // Step 3: the first hole.

  typedef struct packed {
    logic send;
    logic [PsnBits-1:0] psn;
    logic found;
    sender_ctx_t ctx;
    logic [GroupBits-1:0] hole_groups;
    logic [2:0] hole_rest;
  } searched_t;

  searched_t searched, searched_q;
  logic [Groups-1:0] reached, above;
  logic all_filled;

  run_tree #(
    .Groups(Groups)
  ) u_run (
    .full_i(chosen_q.full),
    .length_i(chosen_q.length),
    .all_o(all_filled),
    .group_o(searched.hole_groups),
    .length_o(searched.hole_rest),
    .reached_o(reached)
  );

  // A group behind the one in which the run ends has a set bit, or that one itself has one above its run. A group that
  // is not full ends the run, so groups behind it are not reached.
  assign above = (chosen_q.any & ~reached) | (chosen_q.hole & reached);

  assign searched.send  = chosen_q.send;
  assign searched.psn   = chosen_q.psn;
  assign searched.found = chosen_q.search & ~all_filled & |above;
  assign searched.ctx   = chosen_q.ctx;

  pipe_stage #(.Width($bits(searched_t)), .Cut(Pipelined)) u_searched (.clk_i, .en_i(en), .d_i(searched), .q_o(searched_q));

  // Step 4: its number.

  typedef struct packed {
    logic send;
    logic [PsnBits-1:0] psn;
    sender_ctx_t ctx;
  } sent_t;

  sent_t sent, sent_q;
  logic [PsnBits-1:0] hole;

  assign hole = searched_q.ctx.acked + PsnBits'({searched_q.hole_groups, searched_q.hole_rest});

  assign sent.send              = searched_q.send;
  assign sent.psn               = searched_q.psn;
  assign sent.ctx.next          = searched_q.ctx.next;
  assign sent.ctx.acked         = searched_q.ctx.acked;
  assign sent.ctx.retransmit    = searched_q.found ? hole : searched_q.ctx.retransmit;
  assign sent.ctx.recover       = searched_q.ctx.recover;
  assign sent.ctx.sacks         = searched_q.ctx.sacks;
  assign sent.ctx.do_retransmit = searched_q.found;
  assign sent.ctx.in_recovery   = searched_q.ctx.in_recovery;
  assign sent.ctx.find_new_hole = 1'b0;

  pipe_stage #(.Width($bits(sent_t))) u_sent (.clk_i, .en_i(en), .d_i(sent), .q_o(sent_q));

  assign send_o = sent_q.send;
  assign psn_o  = sent_q.psn;
  assign ctx_o  = sent_q.ctx;

endmodule
