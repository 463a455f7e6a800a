// Copyright Selvedge contributors. Licensed under the Apache License, Version 2.0; see LICENSE.
// SPDX-License-Identifier: Apache-2.0

// A flat module between two shift registers, so that place and route is not about pins. FLAT, its PARAMETERS, IN_BITS
// and OUT_BITS are macros. Paths begin and end in registers, as they would in a NIC.
module scan (
  input  logic clk_i,
  input  logic rst_ni,
  input  logic scan_i,
  input  logic valid_i,
  output logic ready_o,
  input  logic ready_i,
  input  logic load_i,
  output logic valid_o,
  output logic scan_o
);

  logic [`IN_BITS-1:0] in_q;
  logic [`OUT_BITS-1:0] out, out_q;
  logic valid_q, ready_q, load_q, ready, valid;

  always_ff @(posedge clk_i) begin
    in_q    <= {in_q[`IN_BITS-2:0], scan_i};
    out_q   <= load_q ? out : {out_q[`OUT_BITS-2:0], 1'b0};
    valid_q <= valid_i;
    ready_q <= ready_i;
    load_q  <= load_i;
    ready_o <= ready;
    valid_o <= valid;
  end

  assign scan_o = out_q[`OUT_BITS-1];

  `FLAT #(
    `PARAMETERS
  ) u_flat (
    .clk_i,
    .rst_ni,
    .valid_i(valid_q),
    .ready_o(ready),
    .data_i(in_q),
    .valid_o(valid),
    .ready_i(ready_q),
    .data_o(out)
  );

endmodule
