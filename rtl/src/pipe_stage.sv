// Copyright Selvedge contributors. Licensed under the Apache License, Version 2.0; see LICENSE.
// SPDX-License-Identifier: Apache-2.0

// A place where a pipeline may be cut: a register, or wires.
module pipe_stage #(
  parameter int unsigned Width = 1,
  parameter bit Cut = 1'b1
) (
  input  logic clk_i,
  input  logic en_i,
  input  logic [Width-1:0] d_i,
  output logic [Width-1:0] q_o
);

  if (Cut) begin : gen_register
    logic [Width-1:0] value_q;
    always_ff @(posedge clk_i) begin
      if (en_i) begin
        value_q <= d_i;
      end
    end
    assign q_o = value_q;
  end else begin : gen_wires
    logic unused;
    assign unused = ^{clk_i, en_i};
    assign q_o = d_i;
  end

endmodule
