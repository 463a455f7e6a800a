// Copyright Selvedge contributors. Licensed under the Apache License, Version 2.0; see LICENSE.
// SPDX-License-Identifier: Apache-2.0

// melo_rx behind two flat vectors, for synthesis alone: {slots, connection, psn, inputs of swapping} and {verdict,
// nack, cum_ack, holes, free blocks, outputs of swapping}.
module flat_melo_rx #(
  parameter int unsigned Blocks = 128,
  parameter int unsigned Connections = 64,
  localparam int unsigned QpBits = $clog2(Connections),
  localparam int unsigned InBits = 221 + 2 * QpBits,
  localparam int unsigned OutBits = 297 + $clog2(Blocks + 1)
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

  logic swap_valid, swap_ready, swap_load, swapped_valid, swapped_ready, swapped_ok;
  logic out_valid, out_ready, in_valid, in_ready;
  logic [QpBits-1:0] swap_qp;
  logic [159:0] swap_ctx, swapped_ctx;
  logic [7:0] out_bits, in_bits;

  assign {slots, qp, psn, swap_valid, swap_load, swap_qp, swap_ctx, swapped_ready, out_ready, in_valid, in_bits}
      = data_i;
  assign data_o = {verdict, nack, cum_ack, holes, free, swap_ready, swapped_valid, swapped_ok, swapped_ctx, out_valid,
      out_bits, in_ready};

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
    .free_o(free),
    .swap_valid_i(swap_valid),
    .swap_ready_o(swap_ready),
    .swap_load_i(swap_load),
    .swap_qp_i(swap_qp),
    .swap_ctx_i(swap_ctx),
    .swapped_valid_o(swapped_valid),
    .swapped_ready_i(swapped_ready),
    .swapped_ok_o(swapped_ok),
    .swapped_ctx_o(swapped_ctx),
    .out_valid_o(out_valid),
    .out_ready_i(out_ready),
    .out_bits_o(out_bits),
    .in_valid_i(in_valid),
    .in_ready_o(in_ready),
    .in_bits_i(in_bits)
  );

endmodule
