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
// 1. A context is read two cycles before its module takes it, and written when the module's answer is taken. Until
//    then an event of that queue pair waits, and all behind it; its context is forwarded from that answer.
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

  logic open_receiver, open_sender, open;

  assign open         = open_valid_i & open_ready_o;
  assign open_ready_o = ~open_receiver & ~open_sender;

  // ---- Receiver ----

  typedef struct packed {
    logic [4:0] opcode;
    logic [PsnBits-1:0] psn;
  } data_t;

  logic data_valid, data_ready, data_in_flight, data_leave, unused_kind, unused_done_kind;
  data_t data;
  receiver_ctx_t receiver_ctx_read, receiver_ctx_done, receiver_ctx_fresh;
  logic unused_in_flight;

  assign unused_in_flight   = data_in_flight;
  assign data_leave         = answer_valid_o & answer_ready_i;
  assign receiver_ctx_fresh = '{expected: open_psn_i, default: '0};
  assign open_receiver      = data_leave;

  context_stage #(
    .QueuePairs(QueuePairs),
    .ContextBits($bits(receiver_ctx_t)),
    .EventBits($bits(data_t))
  ) u_receivers (
    .clk_i,
    .rst_ni,
    .open_i(open),
    .open_qp_i,
    .open_ctx_i(receiver_ctx_fresh),
    .valid_i(data_valid_i),
    .ready_o(data_ready_o),
    .qp_i(data_qp_i),
    .kind_i(1'b0),
    .event_i({data_opcode_i, data_psn_i}),
    .valid_o(data_valid),
    .ready_i(data_ready),
    .kind_o(unused_kind),
    .event_o(data),
    .ctx_o(receiver_ctx_read),
    .done_valid_o(data_in_flight),
    .done_qp_o(answer_qp_o),
    .done_kind_o(unused_done_kind),
    .leave_i(data_leave),
    .done_ctx_i(receiver_ctx_done)
  );

  receive_data #(.W(W), .Pipelined(Pipelined)) u_receive_data (
    .clk_i,
    .rst_ni,
    .valid_i(data_valid),
    .ready_o(data_ready),
    .opcode_i(data.opcode),
    .psn_i(data.psn),
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
    // Of an acknowledgement: NACK; of a timer: quick; of a transmission: has a limit.
    logic flag;
    // Cumulative acknowledgement, rate factor or limit.
    logic [PsnBits-1:0] first;
    logic [PsnBits-1:0] sack;
  } request_t;

  kind_e arriving_kind;
  request_t arriving, request;
  logic [QpBits-1:0] arriving_qp, done_qp;
  logic may_start, is_read, is_taken, in_flight, leave;
  logic [1:0] kind, done_kind;
  sender_ctx_t ctx_read, ctx_done, ctx_acked, ctx_sent, ctx_timed, ctx_fresh;
  timer_ctx_t timer_ctx_read, timer_ctx_done;
  logic ack_ready, timer_ready, free_ready;
  logic acked_valid, timed_valid, sent_valid;

  always_comb begin
    if (ack_valid_i) begin
      arriving_kind = Ack;
      arriving      = '{flag: ack_nack_i, first: ack_cum_ack_i, sack: ack_sack_i};
      arriving_qp   = ack_qp_i;
    end else if (timer_valid_i) begin
      arriving_kind = Timer;
      arriving      = '{flag: timer_quick_i, first: timer_rate_factor_i, sack: '0};
      arriving_qp   = timer_qp_i;
    end else begin
      arriving_kind = Free;
      arriving      = '{flag: free_has_limit_i, first: free_limit_i, sack: '0};
      arriving_qp   = free_qp_i;
    end
  end

  assign ack_ready_o   = may_start;
  assign timer_ready_o = may_start & ~ack_valid_i;
  assign free_ready_o  = may_start & ~ack_valid_i & ~timer_valid_i;

  assign ctx_fresh = '{
    next: open_psn_i,
    acked: open_psn_i,
    retransmit: open_psn_i,
    recover: open_psn_i,
    default: '0
  };
  assign open_sender = leave;

  context_stage #(
    .QueuePairs(QueuePairs),
    .ContextBits($bits(sender_ctx_t)),
    .EventBits($bits(request_t)),
    .KindBits(2)
  ) u_senders (
    .clk_i,
    .rst_ni,
    .open_i(open),
    .open_qp_i,
    .open_ctx_i(ctx_fresh),
    .valid_i(ack_valid_i | timer_valid_i | free_valid_i),
    .ready_o(may_start),
    .qp_i(arriving_qp),
    .kind_i(arriving_kind),
    .event_i(arriving),
    .valid_o(is_read),
    .ready_i(is_taken),
    .kind_o(kind),
    .event_o(request),
    .ctx_o(ctx_read),
    .done_valid_o(in_flight),
    .done_qp_o(done_qp),
    .done_kind_o(done_kind),
    .leave_i(leave),
    .done_ctx_i(ctx_done)
  );

  always_comb begin
    unique case (kind)
      Ack:     is_taken = ack_ready;
      Timer:   is_taken = timer_ready;
      default: is_taken = free_ready;
    endcase
  end

  receive_ack #(.W(W), .Pipelined(Pipelined)) u_receive_ack (
    .clk_i,
    .rst_ni,
    .valid_i(is_read & (kind == Ack)),
    .ready_o(ack_ready),
    .nack_i(request.flag),
    .cum_ack_i(request.first),
    .sack_i(request.sack),
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
    quick: request.flag,
    rate_factor: request.first
  };

  timeout u_timeout (
    .clk_i,
    .rst_ni,
    .low_packets_i,
    .valid_i(is_read & (kind == Timer)),
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
    if (is_read & timer_ready & (kind == Timer)) begin
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
    .valid_i(is_read & (kind == Free)),
    .ready_o(free_ready),
    .has_limit_i(request.flag),
    .limit_i(request.first),
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
