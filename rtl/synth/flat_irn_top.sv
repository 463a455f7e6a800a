// Copyright Selvedge contributors. Licensed under the Apache License, Version 2.0; see LICENSE.
// SPDX-License-Identifier: Apache-2.0

// irn_top behind two flat vectors, all handshakes among them, for synthesis alone: valid_i and ready_i stand for the
// events that open queue pairs.
module flat_irn_top #(
  parameter int unsigned W = 128,
  parameter bit Pipelined = 1'b1,
  parameter int unsigned QueuePairs = 1024,
  localparam int unsigned QpBits = $clog2(QueuePairs),
  localparam int unsigned InBits = 206 + 5 * QpBits,
  localparam int unsigned OutBits = 105 + $clog2(W + 1) + 3 * QpBits
) (
  input  logic clk_i,
  input  logic rst_ni,
  input  logic valid_i,
  output logic ready_o,
  input  logic [InBits-1:0] data_i,
  output logic valid_o,
  input  logic ready_i,
  output logic [OutBits-1:0] data_o
);

  logic [23:0] cap, low_packets, open_psn, data_psn, ack_cum_ack, ack_sack, timer_rate_factor, free_limit;
  logic [QpBits-1:0] open_qp, data_qp, ack_qp, timer_qp, free_qp;
  logic [4:0] data_opcode;
  logic data_valid, ack_valid, ack_nack, timer_valid, timer_quick, free_valid, free_has_limit;
  logic extend_ready, send_ready;

  assign {
    cap, low_packets, open_qp, open_psn, data_valid, data_qp, data_opcode, data_psn, ack_valid, ack_qp, ack_nack,
    ack_cum_ack, ack_sack, timer_valid, timer_qp, timer_quick, timer_rate_factor, free_valid, free_qp, free_has_limit,
    free_limit, extend_ready, send_ready
  } = data_i;

  logic data_ready, answer_nack, ack_ready, timer_ready, extend_valid, extend, free_ready, send_valid, send;
  logic [QpBits-1:0] answer_qp, extend_qp, send_qp;
  logic [23:0] answer_cum_ack, answer_msn, answer_sack, send_psn;
  logic [$clog2(W+1)-1:0] answer_cqes;

  assign data_o = {
    data_ready, answer_qp, answer_nack, answer_cum_ack, answer_msn, answer_sack, answer_cqes, ack_ready, timer_ready,
    extend_valid, extend_qp, extend, free_ready, send_valid, send_qp, send, send_psn
  };

  irn_top #(
    .W(W),
    .Pipelined(Pipelined),
    .QueuePairs(QueuePairs)
  ) u_dut (
    .clk_i,
    .rst_ni,
    .cap_i(cap),
    .low_packets_i(low_packets),
    .open_valid_i(valid_i),
    .open_ready_o(ready_o),
    .open_qp_i(open_qp),
    .open_psn_i(open_psn),
    .data_valid_i(data_valid),
    .data_ready_o(data_ready),
    .data_qp_i(data_qp),
    .data_opcode_i(data_opcode),
    .data_psn_i(data_psn),
    .answer_valid_o(valid_o),
    .answer_ready_i(ready_i),
    .answer_qp_o(answer_qp),
    .answer_nack_o(answer_nack),
    .answer_cum_ack_o(answer_cum_ack),
    .answer_msn_o(answer_msn),
    .answer_sack_o(answer_sack),
    .answer_cqes_o(answer_cqes),
    .ack_valid_i(ack_valid),
    .ack_ready_o(ack_ready),
    .ack_qp_i(ack_qp),
    .ack_nack_i(ack_nack),
    .ack_cum_ack_i(ack_cum_ack),
    .ack_sack_i(ack_sack),
    .timer_valid_i(timer_valid),
    .timer_ready_o(timer_ready),
    .timer_qp_i(timer_qp),
    .timer_quick_i(timer_quick),
    .timer_rate_factor_i(timer_rate_factor),
    .extend_valid_o(extend_valid),
    .extend_ready_i(extend_ready),
    .extend_qp_o(extend_qp),
    .extend_o(extend),
    .free_valid_i(free_valid),
    .free_ready_o(free_ready),
    .free_qp_i(free_qp),
    .free_has_limit_i(free_has_limit),
    .free_limit_i(free_limit),
    .send_valid_o(send_valid),
    .send_ready_i(send_ready),
    .send_qp_o(send_qp),
    .send_o(send),
    .send_psn_o(send_psn)
  );

endmodule
