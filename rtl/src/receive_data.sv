// Copyright Selvedge contributors. Licensed under the Apache License, Version 2.0; see LICENSE.
// SPDX-License-Identifier: Apache-2.0

// A data packet has arrived (IRN section 6.2, receiveData): what to answer, which receive work requests are complete,
// and the queue pair's new context.
//
// 1. The run of packets that have arrived behind the expected one does not depend on the packet that arrives. It is
//    sought while the packet's number is compared.
// 2. Each group of eight packets counts its own messages within its own run. Counts of groups that the whole run does
//    not reach are left out when they are added.
// 3. A bitmap's head is always clear: what has arrived in order has left it.
module receive_data
  import irn_pkg::*;
#(
  // Packets that the bitmaps hold, a multiple of 16, at least 32.
  parameter int unsigned W = 128,
  // A packet per cycle, four cycles each; else one every four cycles, three cycles each, as in the paper.
  parameter bit Pipelined = 1'b1,
  localparam int unsigned ContextBits = 2 * PsnBits + 2 * W,
  localparam int unsigned CountBits = $clog2(W + 1)
) (
  input  logic clk_i,
  input  logic rst_ni,

  input  logic valid_i,
  output logic ready_o,
  // Low five bits of the BTH opcode.
  input  logic [4:0] opcode_i,
  input  logic [PsnBits-1:0] psn_i,
  // A receiver_ctx_t.
  input  logic [ContextBits-1:0] ctx_i,

  output logic valid_o,
  input  logic ready_i,
  // The packet lies beyond the expected one: the answer is a NACK.
  output logic nack_o,
  output logic [PsnBits-1:0] cum_ack_o,
  output logic [PsnBits-1:0] msn_o,
  // The packet that arrived, for ACKs, too.
  output logic [PsnBits-1:0] sack_o,
  // Receive work requests that this packet completes, 0 to W.
  output logic [CountBits-1:0] cqes_o,
  output logic [ContextBits-1:0] ctx_o
);

  `include "irn_receiver.svh"

  localparam int unsigned Groups = W / 8;
  localparam int unsigned GroupBits = $clog2(Groups);
  localparam int unsigned SlotBits = $clog2(W);
  // Two partial counts are left for the last step; each is at most W.
  localparam int unsigned PairBits = 3 + $clog2(Groups);
  localparam int unsigned Latency = latency(Pipelined);
  localparam int unsigned Interval = interval(Pipelined);

  logic en;

  stream_control #(.Latency(Latency), .Interval(Interval)) u_control (
    .clk_i, .rst_ni, .valid_i, .ready_o, .valid_o, .ready_i, .en_o(en)
  );

  // Step 1: compare, and the groups' runs and counts.

  typedef struct packed {
    logic [1:0] arrival;
    logic [PsnBits-1:0] psn;
    logic is_next;
    logic [PsnBits-1:0] ahead;
    receiver_ctx_t ctx;
    logic [Groups-1:0] full;
    logic [Groups-1:0][2:0] length;
    logic [Groups-1:0][3:0] messages;
    logic [Groups-1:0][3:0] receives;
  } compared_t;

  receiver_ctx_t ctx;
  compared_t compared, compared_q;
  logic [W-1:0] arrived, behind, behind_messages, behind_receives;

  assign ctx              = receiver_ctx_t'(ctx_i);
  assign compared.ctx     = ctx;
  assign compared.psn     = psn_i;
  assign compared.arrival = arrival_of_opcode(opcode_i);
  assign compared.is_next = psn_i == ctx.expected;
  assign compared.ahead   = psn_i - ctx.expected;

  // Bit i is the i-th packet behind the expected one.
  assign arrived         = ctx.map1 | ctx.map2;
  assign behind          = arrived >> 1;
  assign behind_messages = ctx.map2 >> 1;
  assign behind_receives = (ctx.map1 & ctx.map2) >> 1;

  for (genvar g = 0; g < Groups; g++) begin : gen_groups
    logic [7:0] mask;
    run_group u_run (
      .bits_i(behind[8*g+:8]),
      .full_o(compared.full[g]),
      .length_o(compared.length[g]),
      .mask_o(mask)
    );
    count_ones8 u_messages (
      .bits_i(behind_messages[8*g+:8] & mask),
      .count_o(compared.messages[g])
    );
    count_ones8 u_receives (
      .bits_i(behind_receives[8*g+:8] & mask),
      .count_o(compared.receives[g])
    );
  end

  pipe_stage #(.Width($bits(compared_t))) u_compared (.clk_i, .en_i(en), .d_i(compared), .q_o(compared_q));

  // Step 2: the whole run, and the packet's own place.

  typedef struct packed {
    logic [PsnBits-1:0] psn;
    logic nack;
    logic is_next;
    logic own_message;
    logic own_receive;
    logic [PsnBits-1:0] expected;
    logic [PsnBits-1:0] msn;
    // Moved by one already if the packet was the expected one.
    logic [W-1:0] map1;
    logic [W-1:0] map2;
    logic [GroupBits-1:0] run_groups;
    logic [2:0] run_rest;
    logic [Groups/2-1:0][4:0] messages;
    logic [Groups/2-1:0][4:0] receives;
  } placed_t;

  placed_t placed, placed_q;
  logic [Groups-1:0] reached;
  logic [GroupBits-1:0] run_group_index;
  logic [2:0] run_rest;
  logic fits;
  logic [W-1:0] slot, map1_next, map2_next;
  logic [Groups-1:0][3:0] messages_reached, receives_reached;

  // The bit behind the bitmap's last packet is clear, so not all groups can be full.
  logic unused_all;
  run_tree #(
    .Groups(Groups)
  ) u_run (
    .full_i(compared_q.full),
    .length_i(compared_q.length),
    .all_o(unused_all),
    .group_o(run_group_index),
    .length_o(run_rest),
    .reached_o(reached)
  );

  assign placed.psn         = compared_q.psn;
  assign placed.expected    = compared_q.ctx.expected;
  assign placed.msn         = compared_q.ctx.msn;
  assign placed.is_next     = compared_q.is_next;
  assign placed.nack        = ~compared_q.is_next & ~compared_q.ahead[PsnBits-1];
  assign placed.own_message = compared_q.is_next & compared_q.arrival[1];
  assign placed.own_receive = compared_q.is_next & (compared_q.arrival == Receive);
  assign placed.run_groups  = run_group_index & {GroupBits{compared_q.is_next}};
  assign placed.run_rest    = run_rest & {3{compared_q.is_next}};

  // Beyond the bitmap a packet is answered, but not kept (policy 2). What has arrived before stays as it is.
  assign fits      = compared_q.ahead < PsnBits'(W);
  assign map1_next = compared_q.ctx.map1 >> 1;
  assign map2_next = compared_q.ctx.map2 >> 1;
  for (genvar i = 0; i < W; i++) begin : gen_slots
    assign slot[i] = fits & (compared_q.ahead[SlotBits-1:0] == SlotBits'(i))
        & ~compared_q.ctx.map1[i] & ~compared_q.ctx.map2[i];
  end
  assign placed.map1 = compared_q.is_next ? map1_next :
      (compared_q.ctx.map1 | (slot & {W{compared_q.arrival[0]}}));
  assign placed.map2 = compared_q.is_next ? map2_next :
      (compared_q.ctx.map2 | (slot & {W{compared_q.arrival[1]}}));

  for (genvar g = 0; g < Groups; g++) begin : gen_reached
    assign messages_reached[g] = compared_q.messages[g] & {4{reached[g] & compared_q.is_next}};
    assign receives_reached[g] = compared_q.receives[g] & {4{reached[g] & compared_q.is_next}};
  end
  for (genvar g = 0; g < Groups / 2; g++) begin : gen_pairs
    sum_tree #(.Count(2), .InBits(4), .Sums(1)) u_messages (
      .numbers_i(messages_reached[2*g+:2]),
      .sums_o(placed.messages[g])
    );
    sum_tree #(.Count(2), .InBits(4), .Sums(1)) u_receives (
      .numbers_i(receives_reached[2*g+:2]),
      .sums_o(placed.receives[g])
    );
  end

  pipe_stage #(.Width($bits(placed_t))) u_placed (.clk_i, .en_i(en), .d_i(placed), .q_o(placed_q));

  // Step 3: move by whole groups, and add.

  typedef struct packed {
    logic [PsnBits-1:0] psn;
    logic nack;
    logic is_next;
    logic own_message;
    logic own_receive;
    logic [PsnBits-1:0] expected;
    logic [PsnBits-1:0] msn;
    logic [W-1:0] map1;
    logic [W-1:0] map2;
    logic [GroupBits-1:0] run_groups;
    logic [2:0] run_rest;
    logic [1:0][PairBits-1:0] messages;
    logic [1:0][PairBits-1:0] receives;
  } moved_t;

  moved_t moved, moved_q;

  assign moved.psn         = placed_q.psn;
  assign moved.nack        = placed_q.nack;
  assign moved.is_next     = placed_q.is_next;
  assign moved.own_message = placed_q.own_message;
  assign moved.own_receive = placed_q.own_receive;
  assign moved.expected    = placed_q.expected;
  assign moved.msn         = placed_q.msn;
  assign moved.run_groups  = placed_q.run_groups;
  assign moved.run_rest    = placed_q.run_rest;

  shift_right #(.Width(W), .AmountBits(GroupBits), .Scale(3)) u_groups1 (
    .bits_i(placed_q.map1),
    .amount_i(placed_q.run_groups),
    .bits_o(moved.map1)
  );
  shift_right #(.Width(W), .AmountBits(GroupBits), .Scale(3)) u_groups2 (
    .bits_i(placed_q.map2),
    .amount_i(placed_q.run_groups),
    .bits_o(moved.map2)
  );
  sum_tree #(.Count(Groups / 2), .InBits(5), .Sums(2)) u_messages (
    .numbers_i(placed_q.messages),
    .sums_o(moved.messages)
  );
  sum_tree #(.Count(Groups / 2), .InBits(5), .Sums(2)) u_receives (
    .numbers_i(placed_q.receives),
    .sums_o(moved.receives)
  );

  pipe_stage #(.Width($bits(moved_t)), .Cut(Pipelined)) u_moved (.clk_i, .en_i(en), .d_i(moved), .q_o(moved_q));

  // Step 4: move by the rest, and the numbers.

  typedef struct packed {
    logic nack;
    logic [PsnBits-1:0] sack;
    logic [CountBits-1:0] cqes;
    receiver_ctx_t ctx;
  } answered_t;

  answered_t answered, answered_q;
  logic [PsnBits-1:0] run, first, second, sum, carries;

  assign answered.nack = moved_q.nack;
  assign answered.sack = moved_q.psn;

  assign run                   = PsnBits'({moved_q.run_groups, moved_q.run_rest});
  assign answered.ctx.expected = moved_q.expected + run + PsnBits'(moved_q.is_next);

  // Three numbers become two before they enter a carry chain.
  assign first            = PsnBits'(moved_q.messages[0]);
  assign second           = PsnBits'(moved_q.messages[1]);
  assign sum              = moved_q.msn ^ first ^ second;
  assign carries          = ((moved_q.msn & first) | (moved_q.msn & second) | (first & second)) << 1;
  assign answered.ctx.msn = sum + carries + PsnBits'(moved_q.own_message);
  assign answered.cqes    = CountBits'(moved_q.receives[0]) + CountBits'(moved_q.receives[1])
      + CountBits'(moved_q.own_receive);

  shift_right #(.Width(W), .AmountBits(3)) u_rest1 (
    .bits_i(moved_q.map1),
    .amount_i(moved_q.run_rest),
    .bits_o(answered.ctx.map1)
  );
  shift_right #(.Width(W), .AmountBits(3)) u_rest2 (
    .bits_i(moved_q.map2),
    .amount_i(moved_q.run_rest),
    .bits_o(answered.ctx.map2)
  );

  pipe_stage #(.Width($bits(answered_t))) u_answered (.clk_i, .en_i(en), .d_i(answered), .q_o(answered_q));

  assign nack_o    = answered_q.nack;
  assign cum_ack_o = answered_q.ctx.expected;
  assign msn_o     = answered_q.ctx.msn;
  assign sack_o    = answered_q.sack;
  assign cqes_o    = answered_q.cqes;
  assign ctx_o     = answered_q.ctx;

endmodule
