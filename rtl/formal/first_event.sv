// Copyright Selvedge contributors. Licensed under the Apache License, Version 2.0; see LICENSE.
// SPDX-License-Identifier: Apache-2.0

// Reset, and the first event that a module takes, kept until it is answered: what the proofs of single events look at.
module first_event #(
  parameter int unsigned Bits = 1
) (
  input  logic clk_i,
  output logic rst_no,

  // The module takes this event.
  input  logic take_i,
  input  logic [Bits-1:0] event_i,
  // The module's answer is taken.
  input  logic answer_i,

  output logic taken_o,
  output logic answered_o,
  output logic [Bits-1:0] event_o
);

  logic rst_nq = 1'b0, taken_q = 1'b0, answered_q = 1'b0;
  logic [Bits-1:0] event_q;

  always_ff @(posedge clk_i) begin
    rst_nq <= 1'b1;
    if (rst_nq && take_i && !taken_q) begin
      taken_q <= 1'b1;
      event_q <= event_i;
    end
    if (answer_i) answered_q <= 1'b1;
  end

  assign rst_no     = rst_nq;
  assign taken_o    = taken_q;
  assign answered_o = answered_q;
  assign event_o    = event_q;

endmodule
