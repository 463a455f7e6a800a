// Copyright Selvedge contributors. Licensed under the Apache License, Version 2.0; see LICENSE.
// SPDX-License-Identifier: Apache-2.0

// MELO's swapping of connections (section 3.2.5): a connection leaves the chip and its blocks return to the pool, or it
// comes back and takes blocks for its bits, which may be others than before. A block per cycle, since blocks are linked
// one behind another and free ones are a stack; the host's memory may be slower.
module melo_swap #(
  parameter int unsigned Blocks = 128,
  localparam int unsigned CountBits = $clog2(Blocks + 1)
) (
  input  logic clk_i,
  input  logic rst_ni,

  // Unload the blocks from start_i on, so many, or load so many.
  input  logic valid_i,
  output logic ready_o,
  input  logic load_i,
  input  logic [CountBits-1:0] count_i,
  input  logic [7:0] start_i,

  // It is done. A load is not ok if the pool has too few blocks: then none is taken, and no bits are read.
  output logic valid_o,
  input  logic ready_i,
  output logic ok_o,
  // The first and the last block that were taken.
  output logic [7:0] start_o,
  output logic [7:0] end_o,

  // To the host's memory: bits of the blocks, in order.
  output logic out_valid_o,
  input  logic out_ready_i,
  output logic [7:0] out_bits_o,

  // From the host's memory.
  input  logic in_valid_i,
  output logic in_ready_o,
  input  logic [7:0] in_bits_i,

  // melo_pool.
  input  logic [CountBits-1:0] free_i,
  output logic take_o,
  input  logic [7:0] take_block_i,
  output logic [7:0] take_bits_o,
  output logic link_o,
  output logic [7:0] link_block_o,
  output logic give_o,
  output logic [7:0] give_block_o,
  output logic [7:0] block_o,
  input  logic [7:0] bits_i,
  input  logic [7:0] next_i
);

  typedef enum logic [1:0] {
    Idle,
    Unload,
    Load,
    Done
  } state_e;

  state_e state_d, state_q;
  logic ok_d, ok_q, is_first_d, is_first_q;
  logic [CountBits-1:0] left_d, left_q;
  // The first block, which moves along when unloading, and the last one.
  logic [7:0] start_d, start_q, end_d, end_q;

  assign ready_o = state_q == Idle;
  assign valid_o = state_q == Done;
  assign ok_o    = ok_q;
  assign start_o = start_q;
  assign end_o   = end_q;

  assign out_valid_o = state_q == Unload;
  assign out_bits_o  = bits_i;
  assign in_ready_o  = state_q == Load;

  assign block_o      = start_q;
  assign give_o       = out_valid_o & out_ready_i;
  assign give_block_o = start_q;
  assign take_o       = in_ready_o & in_valid_i;
  assign take_bits_o  = in_bits_i;
  assign link_o       = ~is_first_q;
  assign link_block_o = end_q;

  always_comb begin
    state_d    = state_q;
    ok_d       = ok_q;
    is_first_d = is_first_q;
    left_d     = left_q;
    start_d    = start_q;
    end_d      = end_q;

    unique case (state_q)
      Idle: begin
        ok_d       = ~load_i | (count_i <= free_i);
        is_first_d = 1'b1;
        left_d     = count_i;
        start_d    = start_i;
        if (valid_i) begin
          if (!ok_d || count_i == '0) begin
            state_d = Done;
          end else begin
            state_d = load_i ? Load : Unload;
          end
        end
      end

      Unload: begin
        if (out_ready_i) begin
          start_d = next_i;
          left_d  = left_q - CountBits'(1);
          if (left_q == CountBits'(1)) state_d = Done;
        end
      end

      Load: begin
        if (in_valid_i) begin
          if (is_first_q) start_d = take_block_i;
          end_d      = take_block_i;
          is_first_d = 1'b0;
          left_d     = left_q - CountBits'(1);
          if (left_q == CountBits'(1)) state_d = Done;
        end
      end

      default: begin
        if (ready_i) state_d = Idle;
      end
    endcase
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= Idle;
    end else begin
      state_q <= state_d;
    end
  end

  always_ff @(posedge clk_i) begin
    ok_q       <= ok_d;
    is_first_q <= is_first_d;
    left_q     <= left_d;
    start_q    <= start_d;
    end_q      <= end_d;
  end

endmodule
