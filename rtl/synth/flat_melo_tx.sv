// Copyright Selvedge contributors. Licensed under the Apache License, Version 2.0; see LICENSE.
// SPDX-License-Identifier: Apache-2.0

// melo_tx behind two flat vectors, for synthesis alone: {cap, kind, connection, cum_ack, sack, holes} and {send, again,
// psn, loss, acked, sent, waits, free blocks}.
module flat_melo_tx #(
  parameter int unsigned Blocks = 128,
  parameter int unsigned Connections = 64,
  localparam int unsigned QpBits = $clog2(Connections),
  localparam int unsigned InBits = 170 + QpBits,
  localparam int unsigned OutBits = 76 + $clog2(Blocks + 1)
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

  logic [23:0] cap, cum_ack, sack, psn, acked, sent;
  logic [1:0] kind;
  logic [QpBits-1:0] qp;
  logic [2:0][31:0] holes;
  logic send, again, loss, waits;
  logic [$clog2(Blocks+1)-1:0] free;

  assign {cap, kind, qp, cum_ack, sack, holes} = data_i;
  assign data_o = {send, again, psn, loss, acked, sent, waits, free};

  melo_tx #(
    .Blocks(Blocks),
    .Connections(Connections)
  ) u_dut (
    .clk_i,
    .rst_ni,
    .cap_i(cap),
    .valid_i,
    .ready_o,
    .kind_i(kind),
    .qp_i(qp),
    .cum_ack_i(cum_ack),
    .sack_i(sack),
    .holes_i(holes),
    .valid_o,
    .ready_i,
    .send_o(send),
    .again_o(again),
    .psn_o(psn),
    .loss_o(loss),
    .acked_o(acked),
    .sent_o(sent),
    .waits_o(waits),
    .free_o(free)
  );

endmodule
