// Copyright Selvedge contributors. Licensed under the Apache License, Version 2.0; see LICENSE.
// SPDX-License-Identifier: Apache-2.0

// The three newest holes of a connection (MELO, section 3.2.4), newest first; a hole without length is none. Kept
// packet by packet, so that no NACK has to look for them.
module melo_holes (
  // {start 16, length 16}, the newest in the highest bits.
  input  logic [2:0][31:0] holes_i,
  // The packets from psn_i on, so many, are missing, all newer than any hole.
  input  logic add_i,
  input  logic [15:0] length_i,
  // Packet psn_i has arrived.
  input  logic fill_i,
  input  logic [15:0] psn_i,
  output logic [2:0][31:0] holes_o
);

  logic [2:0] hit;
  logic [2:0][15:0] offset;

  for (genvar i = 0; i < 3; i++) begin : gen_hit
    assign offset[i] = psn_i - holes_i[i][31:16];
    assign hit[i]    = fill_i & (offset[i] < holes_i[i][15:0]);
  end

  // Index 2 is the newest.
  always_comb begin
    logic [31:0] older, newer;
    logic [1:0] at;
    at = hit[2] ? 2'd2 : hit[1] ? 2'd1 : 2'd0;
    older = {holes_i[at][31:16], offset[at]};
    newer = {psn_i + 16'd1, holes_i[at][15:0] - offset[at] - 16'd1};
    holes_o = holes_i;
    if (add_i) begin
      holes_o = {{psn_i, length_i}, holes_i[2], holes_i[1]};
    end else if (|hit) begin
      unique case ({older[15:0] != '0, newer[15:0] != '0})
        2'b00: begin
          // Gone: the older ones move up.
          if (at == 2'd2) holes_o = {holes_i[1], holes_i[0], 32'd0};
          if (at == 2'd1) holes_o = {holes_i[2], holes_i[0], 32'd0};
          if (at == 2'd0) holes_o = {holes_i[2], holes_i[1], 32'd0};
        end
        2'b10: holes_o[at] = older;
        2'b01: holes_o[at] = newer;
        default: begin
          // Split: the oldest of all makes room.
          if (at == 2'd2) holes_o = {newer, older, holes_i[1]};
          if (at == 2'd1) holes_o = {holes_i[2], newer, older};
          if (at == 2'd0) holes_o = {holes_i[2], holes_i[1], newer};
        end
      endcase
    end
  end

endmodule
