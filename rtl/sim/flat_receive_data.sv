// Copyright Selvedge contributors. Licensed under the Apache License, Version 2.0; see LICENSE.
// SPDX-License-Identifier: Apache-2.0

// receive_data behind two flat vectors: {opcode, psn, context} and {nack, cum_ack, msn, sack, cqes, context}.
module flat_receive_data
  import irn_pkg::*;
#(
  parameter int unsigned W = 128,
  parameter bit Pipelined = 1'b1,
  localparam int unsigned ContextBits = 2 * PsnBits + 2 * W,
  localparam int unsigned InBits = 5 + PsnBits + ContextBits,
  localparam int unsigned OutBits = 1 + 3 * PsnBits + $clog2(W + 1) + ContextBits
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

  logic [4:0] opcode;
  logic [PsnBits-1:0] psn, cum_ack, msn, sack;
  logic [$clog2(W+1)-1:0] cqes;
  logic [ContextBits-1:0] ctx_in, ctx_out;
  logic nack;

  assign {opcode, psn, ctx_in} = data_i;
  assign data_o = {nack, cum_ack, msn, sack, cqes, ctx_out};

  receive_data #(
    .W(W),
    .Pipelined(Pipelined)
  ) u_dut (
    .clk_i,
    .rst_ni,
    .valid_i,
    .ready_o,
    .opcode_i(opcode),
    .psn_i(psn),
    .ctx_i(ctx_in),
    .valid_o,
    .ready_i,
    .nack_o(nack),
    .cum_ack_o(cum_ack),
    .msn_o(msn),
    .sack_o(sack),
    .cqes_o(cqes),
    .ctx_o(ctx_out)
  );

endmodule
