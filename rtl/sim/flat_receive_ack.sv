// Copyright Selvedge contributors. Licensed under the Apache License, Version 2.0; see LICENSE.
// SPDX-License-Identifier: Apache-2.0

// receive_ack behind two flat vectors: {nack, cum_ack, sack, context} and {context}.
module flat_receive_ack
  import irn_pkg::*;
#(
  parameter int unsigned W = 128,
  parameter bit Pipelined = 1'b1,
  localparam int unsigned ContextBits = 4 * PsnBits + W + 3,
  localparam int unsigned InBits = 1 + 2 * PsnBits + ContextBits,
  localparam int unsigned OutBits = ContextBits
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

  logic nack;
  logic [PsnBits-1:0] cum_ack, sack;
  logic [ContextBits-1:0] ctx_in;

  assign {nack, cum_ack, sack, ctx_in} = data_i;

  receive_ack #(
    .W(W),
    .Pipelined(Pipelined)
  ) u_dut (
    .clk_i,
    .rst_ni,
    .valid_i,
    .ready_o,
    .nack_i(nack),
    .cum_ack_i(cum_ack),
    .sack_i(sack),
    .ctx_i(ctx_in),
    .valid_o,
    .ready_i,
    .ctx_o(data_o)
  );

endmodule
