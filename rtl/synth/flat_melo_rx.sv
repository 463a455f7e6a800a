// Copyright Selvedge contributors. Licensed under the Apache License, Version 2.0; see LICENSE.
// SPDX-License-Identifier: Apache-2.0

// melo_rx behind two flat vectors, for synthesis alone: {slots, connection, psn} and {verdict, nack, cum_ack, holes,
// free blocks}.
module flat_melo_rx #(
  parameter int unsigned Blocks = 128,
  parameter int unsigned Connections = 64,
  localparam int unsigned QpBits = $clog2(Connections),
  localparam int unsigned InBits = 48 + QpBits,
  localparam int unsigned OutBits = 124 + $clog2(Blocks + 1)
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

  logic [23:0] slots, psn, cum_ack;
  logic [QpBits-1:0] qp;
  logic [2:0] verdict;
  logic [2:0][31:0] holes;
  logic [$clog2(Blocks+1)-1:0] free;
  logic nack;

  assign {slots, qp, psn} = data_i;
  assign data_o = {verdict, nack, cum_ack, holes, free};

  melo_rx #(
    .Blocks(Blocks),
    .Connections(Connections)
  ) u_dut (
    .clk_i,
    .rst_ni,
    .slots_i(slots),
    .valid_i,
    .ready_o,
    .qp_i(qp),
    .psn_i(psn),
    .valid_o,
    .ready_i,
    .verdict_o(verdict),
    .nack_o(nack),
    .cum_ack_o(cum_ack),
    .holes_o(holes),
    .free_o(free)
  );

endmodule
