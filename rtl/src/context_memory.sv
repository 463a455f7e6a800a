// Copyright Selvedge contributors. Licensed under the Apache License, Version 2.0; see LICENSE.
// SPDX-License-Identifier: Apache-2.0

// Contexts of queue pairs in block RAM: one read and one write per cycle. What is written can be read in the next
// cycle. The read value stays until the next read.
module context_memory #(
  parameter int unsigned Width = 128,
  parameter int unsigned Depth = 64,
  localparam int unsigned AddressBits = $clog2(Depth)
) (
  input  logic clk_i,

  input  logic read_i,
  input  logic [AddressBits-1:0] read_address_i,
  output logic [Width-1:0] read_data_o,

  input  logic write_i,
  input  logic [AddressBits-1:0] write_address_i,
  input  logic [Width-1:0] write_data_i
);

  logic [Width-1:0] memory [Depth];

  always_ff @(posedge clk_i) begin
    if (write_i) begin
      memory[write_address_i] <= write_data_i;
    end
    if (read_i) begin
      read_data_o <= memory[read_address_i];
    end
  end

endmodule
