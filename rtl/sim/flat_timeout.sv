// Copyright Selvedge contributors. Licensed under the Apache License, Version 2.0; see LICENSE.
// SPDX-License-Identifier: Apache-2.0

// timeout behind two flat vectors: {low_packets, context} and {extend, context}. It has one variant and no bitmap.
module flat_timeout
  import irn_pkg::*;
#(
  localparam int unsigned ContextBits = 4 * PsnBits + 3,
  localparam int unsigned InBits = PsnBits + ContextBits,
  localparam int unsigned OutBits = 1 + ContextBits
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

  logic [PsnBits-1:0] low_packets;
  logic [ContextBits-1:0] ctx_in, ctx_out;
  logic extend;

  assign {low_packets, ctx_in} = data_i;
  assign data_o = {extend, ctx_out};

  timeout u_dut (
    .clk_i,
    .rst_ni,
    .low_packets_i(low_packets),
    .valid_i,
    .ready_o,
    .ctx_i(ctx_in),
    .valid_o,
    .ready_i,
    .extend_o(extend),
    .ctx_o(ctx_out)
  );

endmodule
