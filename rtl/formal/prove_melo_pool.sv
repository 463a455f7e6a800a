// Copyright Selvedge contributors. Licensed under the Apache License, Version 2.0; see LICENSE.
// SPDX-License-Identifier: Apache-2.0

// melo_pool: no block is lost, none is shared, for any number of operations (by induction). Connections may do what
// they like, but take only while a block is free and give only what is held.
module prove_melo_pool #(
  parameter int unsigned Blocks = 8,
  localparam int unsigned CountBits = $clog2(Blocks + 1),
  localparam int unsigned IdBits = $clog2(Blocks)
) (
  input logic clk_i,
  input logic take_i,
  input logic [7:0] take_bits_i,
  input logic link_i,
  input logic [7:0] link_block_i,
  input logic give_i,
  input logic [7:0] give_block_i,
  input logic set_i,
  input logic [7:0] set_mask_i,
  input logic [7:0] block_i
);

  logic rst_n = 1'b0;
  always_ff @(posedge clk_i) rst_n <= 1'b1;

  logic ready;
  logic [CountBits-1:0] free;
  logic [7:0] take_block, bits, next;

  melo_pool #(.Blocks(Blocks)) u_dut (
    .clk_i,
    .rst_ni(rst_n),
    .ready_o(ready),
    .free_o(free),
    .take_i,
    .take_block_o(take_block),
    .take_bits_i,
    .link_i,
    .link_block_i,
    .give_i,
    .give_block_i,
    .set_i,
    .set_mask_i,
    .block_i,
    .bits_o(bits),
    .next_o(next)
  );

  // Blocks that connections hold.
  logic [Blocks-1:0] held_q = '0;
  logic [CountBits-1:0] held_count;

  always_ff @(posedge clk_i) begin
    if (rst_n && take_i) held_q[take_block[IdBits-1:0]] <= 1'b1;
    if (rst_n && give_i) held_q[give_block_i[IdBits-1:0]] <= 1'b0;
  end

  always_comb begin
    held_count = '0;
    for (int unsigned i = 0; i < Blocks; i++) begin
      held_count += CountBits'(held_q[i]);
    end
  end

  always_comb begin
    assume (!(take_i && give_i) && !(take_i && set_i));
    assume (!take_i || (ready && free != '0));
    assume (!give_i || (ready && 32'(give_block_i) < Blocks && held_q[give_block_i[IdBits-1:0]]));
    if (rst_n) begin
      none_is_lost: assert (32'(free) + 32'(held_count) == Blocks);
      none_is_shared: assert (!take_i || (32'(take_block) < Blocks && !held_q[take_block[IdBits-1:0]]));
      not_before_ready: assert (ready || held_q == '0);
      // Invariants: the stack's free part holds every block that is not held, once.
      filled: assert (32'(u_dut.fill_q) <= Blocks && 32'(u_dut.avail_q) <= Blocks);
      fills_first: assert (ready || u_dut.avail_q == '0);
    end
  end

  for (genvar i = 0; i < Blocks; i++) begin : gen_entries
    always_comb begin
      if (rst_n && ready && i >= 32'(u_dut.avail_q)) begin
        entry_is_free: assert (32'(u_dut.available[i]) < Blocks && !held_q[u_dut.available[i][IdBits-1:0]]);
      end
      if (rst_n && !ready && i < 32'(u_dut.fill_q)) begin
        entry_is_filled: assert (32'(u_dut.available[i]) == i);
      end
    end
    for (genvar j = i + 1; j < Blocks; j++) begin : gen_pairs
      always_comb begin
        if (rst_n && ready && i >= 32'(u_dut.avail_q)) begin
          entries_differ: assert (u_dut.available[i] != u_dut.available[j]);
        end
      end
    end
  end

  // It happens: the proofs above are not about nothing.
  always_comb begin
    block_is_taken_again: cover (rst_n && take_i && held_q != '0 && bits != '0);
  end

endmodule
