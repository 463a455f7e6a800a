// Copyright Selvedge contributors. Licensed under the Apache License, Version 2.0; see LICENSE.
// SPDX-License-Identifier: Apache-2.0

// Eight bits of a bitmap: the unbroken run of ones that begins at bit 0, and what else a search for the first zero
// needs in order to combine groups.
module run_group (
  input  logic [7:0] bits_i,
  // All bits are one.
  output logic full_o,
  // Length of the run, 0 to 7; undefined if full.
  output logic [2:0] length_o,
  // Bits that belong to the run.
  output logic [7:0] mask_o
);

  // Every bit of the mask by itself, so that no bit waits for another.
  for (genvar i = 0; i < 8; i++) begin : gen_mask
    assign mask_o[i] = &bits_i[i:0];
  end
  assign full_o = mask_o[7];

  assign length_o[2] = mask_o[3];
  assign length_o[1] = mask_o[3] ? mask_o[5] : mask_o[1];
  assign length_o[0] = mask_o[3] ? (mask_o[4] & ~mask_o[5] | mask_o[6]) : (mask_o[0] & ~mask_o[1] | mask_o[2]);

endmodule
