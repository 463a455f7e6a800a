// Copyright Selvedge contributors. Licensed under the Apache License, Version 2.0; see LICENSE.
// SPDX-License-Identifier: Apache-2.0

// IRN's part of a NIC: contexts of queue pairs in block RAM, and the four modules around them.
//
//                      receiver contexts                        sender contexts
//                     read |      ^ write                      read |      ^ write
//   data -> interlock -> receive_data -> answers   acks, timers, tx -> interlock -> receive_ack ----+
//                                                                              |--> timeout --------+-> in order
//                                                                              +--> tx_free --------+
//
// 1. A context is read one cycle before its module takes it, and written when the module's answer is taken. Until
//    then the interlock holds back events of that queue pair, and all behind them: they wait, nothing is forwarded.
// 2. The sender's modules share one memory, so one of their events begins per cycle: acknowledgements first, then
//    timers, then transmissions. Their answers leave in the order in which the events began.
module irn_top
  import irn_pkg::*;
#(
  parameter int unsigned W = 128,
  parameter bit Pipelined = 1'b1,
  // Queue pairs, at least 2.
  parameter int unsigned QueuePairs = 64,
  localparam int unsigned QpBits = $clog2(QueuePairs),
  localparam int unsigned CountBits = $clog2(W + 1)
) (
  input  logic clk_i,
  input  logic rst_ni,

  // Registers that all queue pairs share.
  input  logic [PsnBits-1:0] cap_i,
  input  logic [PsnBits-1:0] low_packets_i,

  // A queue pair begins, in both directions at the same PSN. No event of it may be in flight.
  input  logic open_valid_i,
  output logic open_ready_o,
  input  logic [QpBits-1:0] open_qp_i,
  input  logic [PsnBits-1:0] open_psn_i,

  // A data packet has arrived.
  input  logic data_valid_i,
  output logic data_ready_o,
  input  logic [QpBits-1:0] data_qp_i,
  input  logic [4:0] data_opcode_i,
  input  logic [PsnBits-1:0] data_psn_i,

  // What to answer.
  output logic answer_valid_o,
  input  logic answer_ready_i,
  output logic [QpBits-1:0] answer_qp_o,
  output logic answer_nack_o,
  output logic [PsnBits-1:0] answer_cum_ack_o,
  output logic [PsnBits-1:0] answer_msn_o,
  output logic [PsnBits-1:0] answer_sack_o,
  output logic [CountBits-1:0] answer_cqes_o,

  // An acknowledgement has arrived.
  input  logic ack_valid_i,
  output logic ack_ready_o,
  input  logic [QpBits-1:0] ack_qp_i,
  input  logic ack_nack_i,
  input  logic [PsnBits-1:0] ack_cum_ack_i,
  input  logic [PsnBits-1:0] ack_sack_i,

  // A timer has fired.
  input  logic timer_valid_i,
  output logic timer_ready_o,
  input  logic [QpBits-1:0] timer_qp_i,
  input  logic timer_quick_i,
  input  logic [PsnBits-1:0] timer_rate_factor_i,

  // Whether it is extended.
  output logic extend_valid_o,
  input  logic extend_ready_i,
  output logic [QpBits-1:0] extend_qp_o,
  output logic extend_o,

  // The link is free for a queue pair.
  input  logic free_valid_i,
  output logic free_ready_o,
  input  logic [QpBits-1:0] free_qp_i,
  input  logic free_has_limit_i,
  input  logic [PsnBits-1:0] free_limit_i,

  // The packet to send, if any.
  output logic send_valid_o,
  input  logic send_ready_i,
  output logic [QpBits-1:0] send_qp_o,
  output logic send_o,
  output logic [PsnBits-1:0] send_psn_o
);

  `include "irn_receiver.svh"
  `include "irn_sender.svh"
  `include "irn_timer.svh"

  localparam int unsigned ReceiverBits = 2 * PsnBits + 2 * W;
  localparam int unsigned SenderBits = 4 * PsnBits + W + 3;
  localparam int unsigned TimerBits = 4 * PsnBits + 3;

  logic open_receiver, open_sender, open;

  assign open         = open_valid_i & open_ready_o;
  assign open_ready_o = ~open_receiver & ~open_sender;

  // ---- Receiver ----

  typedef struct packed {
    logic [4:0] opcode;
    logic [PsnBits-1:0] psn;
  } data_t;

  logic data_may_enter, data_enter, data_leave, data_read_q, data_taken, data_in_flight;
  data_t data_q;
  receiver_ctx_t receiver_ctx_read, receiver_ctx_done, receiver_ctx_fresh;
  logic unused_kind;

  assign data_ready_o = data_may_enter & (~data_read_q | data_taken);
  assign data_enter   = data_valid_i & data_ready_o;
  assign data_leave   = answer_valid_o & answer_ready_i;

  interlock #(.QpBits(QpBits), .KindBits(1), .Slots(8)) u_data_interlock (
    .clk_i,
    .rst_ni,
    .qp_i(data_qp_i),
    .may_enter_o(data_may_enter),
    .enter_i(data_enter),
    .kind_i(1'b0),
    .valid_o(data_in_flight),
    .qp_o(answer_qp_o),
    .kind_o(unused_kind),
    .leave_i(data_leave)
  );
  logic unused_in_flight;
  assign unused_in_flight = data_in_flight;

  assign receiver_ctx_fresh = '{expected: open_psn_i, default: '0};
  assign open_receiver      = data_leave;

  context_memory #(.Width(ReceiverBits), .Depth(QueuePairs)) u_receivers (
    .clk_i,
    .read_i(data_enter),
    .read_address_i(data_qp_i),
    .read_data_o(receiver_ctx_read),
    .write_i(data_leave | open),
    .write_address_i(data_leave ? answer_qp_o : open_qp_i),
    .write_data_i(data_leave ? receiver_ctx_done : receiver_ctx_fresh)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      data_read_q <= 1'b0;
    end else if (data_enter | data_taken) begin
      data_read_q <= data_enter;
    end
  end

  always_ff @(posedge clk_i) begin
    if (data_enter) begin
      data_q <= '{opcode: data_opcode_i, psn: data_psn_i};
    end
  end

  logic receive_data_ready;
  assign data_taken = data_read_q & receive_data_ready;

  receive_data #(.W(W), .Pipelined(Pipelined)) u_receive_data (
    .clk_i,
    .rst_ni,
    .valid_i(data_read_q),
    .ready_o(receive_data_ready),
    .opcode_i(data_q.opcode),
    .psn_i(data_q.psn),
    .ctx_i(receiver_ctx_read),
    .valid_o(answer_valid_o),
    .ready_i(answer_ready_i),
    .nack_o(answer_nack_o),
    .cum_ack_o(answer_cum_ack_o),
    .msn_o(answer_msn_o),
    .sack_o(answer_sack_o),
    .cqes_o(answer_cqes_o),
    .ctx_o(receiver_ctx_done)
  );

  // ---- Sender ----

  typedef enum logic [1:0] {
    Ack,
    Timer,
    Free
  } kind_e;

  typedef struct packed {
    kind_e kind;
    // Of an acknowledgement: NACK; of a timer: quick; of a transmission: has a limit.
    logic flag;
    // Cumulative acknowledgement, rate factor or limit.
    logic [PsnBits-1:0] first;
    logic [PsnBits-1:0] sack;
  } request_t;

  request_t request, request_q;
  logic request_valid, may_enter, enter, leave, read_q, taken;
  logic [QpBits-1:0] request_qp, done_qp;
  logic in_flight, may_start;
  logic [1:0] done_kind;
  sender_ctx_t ctx_read, ctx_done, ctx_acked, ctx_sent, ctx_timed, ctx_fresh;
  timer_ctx_t timer_ctx_read, timer_ctx_done;
  logic ack_ready, timer_ready, free_ready;
  logic acked_valid, timed_valid, sent_valid;

  always_comb begin
    if (ack_valid_i) begin
      request    = '{kind: Ack, flag: ack_nack_i, first: ack_cum_ack_i, sack: ack_sack_i};
      request_qp = ack_qp_i;
    end else if (timer_valid_i) begin
      request    = '{kind: Timer, flag: timer_quick_i, first: timer_rate_factor_i, sack: '0};
      request_qp = timer_qp_i;
    end else begin
      request    = '{kind: Free, flag: free_has_limit_i, first: free_limit_i, sack: '0};
      request_qp = free_qp_i;
    end
  end

  assign request_valid = ack_valid_i | timer_valid_i | free_valid_i;
  assign may_start     = may_enter & (~read_q | taken);
  assign enter         = request_valid & may_start;
  assign ack_ready_o   = may_start;
  assign timer_ready_o = may_start & ~ack_valid_i;
  assign free_ready_o  = may_start & ~ack_valid_i & ~timer_valid_i;

  interlock #(.QpBits(QpBits), .KindBits(2), .Slots(8)) u_interlock (
    .clk_i,
    .rst_ni,
    .qp_i(request_qp),
    .may_enter_o(may_enter),
    .enter_i(enter),
    .kind_i(request.kind),
    .valid_o(in_flight),
    .qp_o(done_qp),
    .kind_o(done_kind),
    .leave_i(leave)
  );

  assign ctx_fresh = '{
    next: open_psn_i,
    acked: open_psn_i,
    retransmit: open_psn_i,
    recover: open_psn_i,
    default: '0
  };
  assign open_sender = leave;

  context_memory #(.Width(SenderBits), .Depth(QueuePairs)) u_senders (
    .clk_i,
    .read_i(enter),
    .read_address_i(request_qp),
    .read_data_o(ctx_read),
    .write_i(leave | open),
    .write_address_i(leave ? done_qp : open_qp_i),
    .write_data_i(leave ? ctx_done : ctx_fresh)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      read_q <= 1'b0;
    end else if (enter | taken) begin
      read_q <= enter;
    end
  end

  always_ff @(posedge clk_i) begin
    if (enter) begin
      request_q <= request;
    end
  end

  always_comb begin
    unique case (request_q.kind)
      Ack:     taken = read_q & ack_ready;
      Timer:   taken = read_q & timer_ready;
      default: taken = read_q & free_ready;
    endcase
  end

  receive_ack #(.W(W), .Pipelined(Pipelined)) u_receive_ack (
    .clk_i,
    .rst_ni,
    .valid_i(read_q & (request_q.kind == Ack)),
    .ready_o(ack_ready),
    .nack_i(request_q.flag),
    .cum_ack_i(request_q.first),
    .sack_i(request_q.sack),
    .ctx_i(ctx_read),
    .valid_o(acked_valid),
    .ready_i(in_flight & (done_kind == Ack)),
    .ctx_o(ctx_acked)
  );

  assign timer_ctx_read = '{
    next: ctx_read.next,
    acked: ctx_read.acked,
    retransmit: ctx_read.retransmit,
    do_retransmit: ctx_read.do_retransmit,
    find_new_hole: ctx_read.find_new_hole,
    quick: request_q.flag,
    rate_factor: request_q.first
  };

  timeout u_timeout (
    .clk_i,
    .rst_ni,
    .low_packets_i,
    .valid_i(read_q & (request_q.kind == Timer)),
    .ready_o(timer_ready),
    .ctx_i(timer_ctx_read),
    .valid_o(timed_valid),
    .ready_i(extend_ready_i & in_flight & (done_kind == Timer)),
    .extend_o(extend_o),
    .ctx_o(timer_ctx_done)
  );

  // The timer's context lacks what timeouts leave alone.
  typedef struct packed {
    logic [PsnBits-1:0] recover;
    logic [W-1:0] sacks;
    logic in_recovery;
  } untimed_t;
  untimed_t untimed_q;
  always_ff @(posedge clk_i) begin
    if (read_q & timer_ready & (request_q.kind == Timer)) begin
      untimed_q <= '{recover: ctx_read.recover, sacks: ctx_read.sacks, in_recovery: ctx_read.in_recovery};
    end
  end
  assign ctx_timed = '{
    next: timer_ctx_done.next,
    acked: timer_ctx_done.acked,
    retransmit: timer_ctx_done.retransmit,
    recover: untimed_q.recover,
    sacks: untimed_q.sacks,
    do_retransmit: timer_ctx_done.do_retransmit,
    in_recovery: untimed_q.in_recovery,
    find_new_hole: timer_ctx_done.find_new_hole
  };
  logic unused_timer;
  assign unused_timer = ^{timer_ctx_done.quick, timer_ctx_done.rate_factor};

  tx_free #(.W(W), .Pipelined(Pipelined)) u_tx_free (
    .clk_i,
    .rst_ni,
    .cap_i,
    .valid_i(read_q & (request_q.kind == Free)),
    .ready_o(free_ready),
    .has_limit_i(request_q.flag),
    .limit_i(request_q.first),
    .ctx_i(ctx_read),
    .valid_o(sent_valid),
    .ready_i(send_ready_i & in_flight & (done_kind == Free)),
    .send_o(send_o),
    .psn_o(send_psn_o),
    .ctx_o(ctx_sent)
  );

  always_comb begin
    unique case (done_kind)
      Ack: begin
        leave    = in_flight & acked_valid;
        ctx_done = ctx_acked;
      end
      Timer: begin
        leave    = in_flight & timed_valid & extend_ready_i;
        ctx_done = ctx_timed;
      end
      default: begin
        leave    = in_flight & sent_valid & send_ready_i;
        ctx_done = ctx_sent;
      end
    endcase
  end

  assign extend_valid_o = in_flight & timed_valid & (done_kind == Timer);
  assign extend_qp_o    = done_qp;
  assign send_valid_o   = in_flight & sent_valid & (done_kind == Free);
  assign send_qp_o      = done_qp;

endmodule
