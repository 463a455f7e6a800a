// Copyright Selvedge contributors. Licensed under the Apache License, Version 2.0; see LICENSE.
// SPDX-License-Identifier: Apache-2.0

// Events between a context memory and the write of their new contexts, in order. An event whose queue pair is among
// them has to wait until that one leaves: then its context is there.
module interlock #(
  parameter int unsigned QpBits = 6,
  // Kinds of events, told apart where they leave.
  parameter int unsigned KindBits = 1,
  // Most events in flight, at least 2.
  parameter int unsigned Slots = 8
) (
  input  logic clk_i,
  input  logic rst_ni,

  // The event that comes to be next, in the cycle after load_i, and the one that is.
  input  logic load_i,
  input  logic [QpBits-1:0] load_qp_i,
  input  logic [QpBits-1:0] qp_i,
  // The next event may come: there is a slot, and its queue pair is not in flight or leaves in this cycle.
  output logic may_enter_o,
  // The event that has been in flight for longest is of its queue pair: what that one leaves is its context.
  output logic follows_o,
  input  logic enter_i,
  input  logic [KindBits-1:0] kind_i,

  // The event that has been in flight for longest.
  output logic valid_o,
  output logic [QpBits-1:0] qp_o,
  output logic [KindBits-1:0] kind_o,
  // It leaves: its context is written in this cycle.
  input  logic leave_i
);

  // Slot 0 is the oldest; slots move down as events leave.
  logic [Slots-1:0] valid_d, valid_q;
  logic [Slots-1:0][QpBits+KindBits-1:0] event_d, event_q;
  // Slots that hold the queue pair of the next event. Compared when it is loaded, so that no comparison lies between
  // a module that is ready and the memory.
  logic [Slots-1:0] loaded, busy_d, busy_q;

  for (genvar i = 0; i < Slots; i++) begin : gen_loaded
    assign loaded[i] = valid_q[i] & (event_q[i][KindBits+:QpBits] == load_qp_i);
  end

  assign follows_o      = busy_q[0];
  assign may_enter_o    = ~|busy_q[Slots-1:1] & (~busy_q[0] | leave_i) & ~valid_q[Slots-1];
  assign valid_o        = valid_q[0];
  assign {qp_o, kind_o} = event_q[0];

  always_comb begin
    logic [Slots-1:0] moved, first_free;
    // The event that enters in this cycle comes into the first slot that is free.
    moved      = leave_i ? valid_q >> 1 : valid_q;
    first_free = ~moved & {moved[Slots-2:0], 1'b1};
    busy_d     = load_i ? loaded : busy_q;
    if (leave_i) busy_d = busy_d >> 1;
    if (load_i && enter_i && qp_i == load_qp_i) busy_d = busy_d | first_free;
  end

  always_comb begin
    logic [Slots-1:0] moved_valid;
    moved_valid = leave_i ? valid_q >> 1 : valid_q;
    for (int unsigned i = 0; i < Slots; i++) begin
      event_d[i] = leave_i && i + 1 < Slots ? event_q[(i+1)%Slots] : event_q[i];
      // Valid slots are the lowest ones, so the first that is free is behind the newest.
      if (enter_i && !moved_valid[i] && (i == 0 || moved_valid[(i+Slots-1)%Slots])) begin
        event_d[i] = {qp_i, kind_i};
      end
    end
    valid_d = enter_i ? {moved_valid[Slots-2:0], 1'b1} : moved_valid;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid_q <= '0;
      busy_q  <= '0;
    end else begin
      valid_q <= valid_d;
      busy_q  <= busy_d;
    end
  end

  always_ff @(posedge clk_i) begin
    event_q <= event_d;
  end

endmodule
