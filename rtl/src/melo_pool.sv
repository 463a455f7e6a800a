// Copyright Selvedge contributors. Licensed under the Apache License, Version 2.0; see LICENSE.
// SPDX-License-Identifier: Apache-2.0

// MELO's pool of bits (Lu et al., "Memory Efficient Loss Recovery for Hardware-based Transport in Datacenter",
// APNet 2017, section 3.2.3): three memories of 8 bits per block, and a pointer.
//
//   bits       a block's eight packets
//   next       the block behind it in its connection's list
//   available  a stack of block numbers; from avail_q on, they are free
//
// One operation per cycle: `take` and `give` exclude one another, `take` and `set` as well.
module melo_pool #(
  // At most 256: numbers of blocks have eight bits.
  parameter int unsigned Blocks = 128,
  localparam int unsigned CountBits = $clog2(Blocks + 1),
  localparam int unsigned IdBits = $clog2(Blocks)
) (
  input  logic clk_i,
  input  logic rst_ni,

  // The stack is filled; for Blocks cycles after reset it is not.
  output logic ready_o,
  // Blocks that are free.
  output logic [CountBits-1:0] free_o,

  // Takes take_block_o, its bits set to take_bits_i; one must be free. With link_i, it becomes the next one of
  // link_block_i.
  input  logic take_i,
  output logic [7:0] take_block_o,
  input  logic [7:0] take_bits_i,
  input  logic link_i,
  input  logic [7:0] link_block_i,

  // Returns a block.
  input  logic give_i,
  input  logic [7:0] give_block_i,

  // Sets bits of a block.
  input  logic set_i,
  input  logic [7:0] set_mask_i,

  // A block's bits and the next block, in the same cycle. `set` works on this block.
  input  logic [7:0] block_i,
  output logic [7:0] bits_o,
  output logic [7:0] next_o
);

  // Read without a clock: distributed RAM.
  logic [7:0] bits [Blocks];
  logic [7:0] next [Blocks];
  logic [7:0] available [Blocks];

  logic [CountBits-1:0] avail_d, avail_q;
  // Counts up to Blocks while the stack is filled.
  logic [CountBits-1:0] fill_q;
  logic filling;

  assign filling      = fill_q != CountBits'(Blocks);
  assign ready_o      = ~filling;
  assign free_o       = CountBits'(Blocks) - avail_q;
  assign take_block_o = available[avail_q[IdBits-1:0]];
  assign bits_o       = bits[block_i[IdBits-1:0]];
  assign next_o       = next[block_i[IdBits-1:0]];

  logic [CountBits-1:0] top;
  assign top = avail_q - CountBits'(1);

  always_comb begin
    avail_d = avail_q;
    if (take_i) begin
      avail_d = avail_q + CountBits'(1);
    end else if (give_i) begin
      avail_d = top;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      avail_q <= '0;
      fill_q  <= '0;
    end else begin
      avail_q <= avail_d;
      if (filling) begin
        fill_q <= fill_q + CountBits'(1);
      end
    end
  end

  // A port each.
  logic stack_write, bits_write;
  logic [IdBits-1:0] stack_address, bits_address;
  logic [7:0] stack_data, bits_data;

  assign stack_write   = filling | give_i;
  assign stack_address = filling ? fill_q[IdBits-1:0] : top[IdBits-1:0];
  assign stack_data    = filling ? 8'(fill_q) : give_block_i;
  assign bits_write    = take_i | set_i;
  assign bits_address  = take_i ? take_block_o[IdBits-1:0] : block_i[IdBits-1:0];
  assign bits_data     = take_i ? take_bits_i : bits_o | set_mask_i;

  always_ff @(posedge clk_i) begin
    if (stack_write) begin
      available[stack_address] <= stack_data;
    end
    if (bits_write) begin
      bits[bits_address] <= bits_data;
    end
    if (take_i & link_i) begin
      next[link_block_i[IdBits-1:0]] <= take_block_o;
    end
  end

  if (IdBits < 8) begin : gen_unused
    logic unused;
    assign unused = ^{block_i[7:IdBits], link_block_i[7:IdBits]};
  end

endmodule
