// Copyright Selvedge contributors. Licensed under the Apache License, Version 2.0; see LICENSE.
// SPDX-License-Identifier: Apache-2.0

// tx_free behind two flat vectors: {cap, has_limit, limit, context} and {send, psn, context}.
module flat_tx_free
  import irn_pkg::*;
#(
  parameter int unsigned W = 128,
  parameter bit Pipelined = 1'b1,
  localparam int unsigned ContextBits = 4 * PsnBits + W + 3,
  localparam int unsigned InBits = 2 * PsnBits + 1 + ContextBits,
  localparam int unsigned OutBits = 1 + PsnBits + ContextBits
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

  logic [PsnBits-1:0] cap, limit, psn;
  logic has_limit, send;
  logic [ContextBits-1:0] ctx_in, ctx_out;

  assign {cap, has_limit, limit, ctx_in} = data_i;
  assign data_o = {send, psn, ctx_out};

  tx_free #(
    .W(W),
    .Pipelined(Pipelined)
  ) u_dut (
    .clk_i,
    .rst_ni,
    .cap_i(cap),
    .valid_i,
    .ready_o,
    .has_limit_i(has_limit),
    .limit_i(limit),
    .ctx_i(ctx_in),
    .valid_o,
    .ready_i,
    .send_o(send),
    .psn_o(psn),
    .ctx_o(ctx_out)
  );

endmodule
