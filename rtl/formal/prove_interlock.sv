// Copyright Selvedge contributors. Licensed under the Apache License, Version 2.0; see LICENSE.
// SPDX-License-Identifier: Apache-2.0

// interlock: no queue pair is in flight twice, events leave in the order in which they came, an event that could enter
// does not wait, and it says whether the oldest event is of the same queue pair. By
// induction, for any number of cycles.
module prove_interlock #(
  parameter int unsigned QpBits = 3,
  parameter int unsigned KindBits = 1,
  parameter int unsigned Slots = 4,
  localparam int unsigned PointerBits = $clog2(2 * Slots)
) (
  input logic clk_i,
  input logic load_i,
  input logic [QpBits-1:0] load_qp_i,
  input logic enter_i,
  input logic [KindBits-1:0] kind_i,
  input logic leave_i
);

  logic rst_n = 1'b0;
  always_ff @(posedge clk_i) rst_n <= 1'b1;

  // The event that is next, until it enters.
  logic next_q = 1'b0;
  logic [QpBits-1:0] next_qp_q;
  always_ff @(posedge clk_i) begin
    if (rst_n) begin
      if (load_i || enter_i) next_q <= load_i;
      if (load_i) next_qp_q <= load_qp_i;
    end
  end

  logic may_enter, follows, valid;
  logic [QpBits-1:0] qp;
  logic [KindBits-1:0] kind;

  interlock #(.QpBits(QpBits), .KindBits(KindBits), .Slots(Slots)) u_dut (
    .clk_i,
    .rst_ni(rst_n),
    .load_i,
    .load_qp_i,
    .qp_i(next_qp_q),
    .may_enter_o(may_enter),
    .follows_o(follows),
    .enter_i,
    .kind_i,
    .valid_o(valid),
    .qp_o(qp),
    .kind_o(kind),
    .leave_i
  );

  // A queue with a pointer: the same by other means.
  logic [QpBits+KindBits-1:0] queue [2*Slots];
  logic [PointerBits-1:0] in_q = '0, out_q = '0, count;
  assign count = in_q - out_q;

  always_ff @(posedge clk_i) begin
    if (rst_n) begin
      if (enter_i) begin
        queue[in_q] <= {next_qp_q, kind_i};
        in_q        <= in_q + 1'b1;
      end
      if (leave_i) out_q <= out_q + 1'b1;
    end
  end

  logic is_in_flight;
  always_comb begin
    // What leaves in this cycle is not in flight any more.
    is_in_flight = 1'b0;
    for (int unsigned i = 0; i < Slots; i++) begin
      if (i < 32'(count) && !(i == 0 && leave_i)) begin
        is_in_flight |= queue[PointerBits'(32'(out_q) + i)][KindBits+:QpBits] == next_qp_q;
      end
    end
  end

  always_comb begin
    // One that is next stays so until it enters.
    assume (!enter_i || (may_enter && next_q));
    assume (!load_i || !next_q || enter_i);
    assume (!leave_i || valid);
    if (rst_n) begin
      never_more: assert (32'(count) <= Slots);
      never_twice: assert (!next_q || !may_enter || !is_in_flight);
      follows_iff: assert (!next_q || follows == (count != '0 && queue[out_q][KindBits+:QpBits] == next_qp_q));
      never_in_vain: assert (!next_q || may_enter || is_in_flight || 32'(count) == Slots);
      shows_oldest: assert (valid == (count != '0));
      in_order: assert (!valid || {qp, kind} == queue[out_q]);
    end
  end

  // Invariants: the slots hold what the queue holds.
  for (genvar i = 0; i < Slots; i++) begin : gen_slots
    always_comb begin
      if (rst_n) begin
        slot_valid: assert (u_dut.valid_q[i] == (i < 32'(count)));
        slot_is_busy: assert (!next_q || u_dut.busy_q[i] ==
            (i < 32'(count) && queue[PointerBits'(32'(out_q) + i)][KindBits+:QpBits] == next_qp_q));
        slot_event: assert (i >= 32'(count) || u_dut.event_q[i] == queue[PointerBits'(32'(out_q) + i)]);
      end
    end
  end

  // It happens: the proofs above are not about nothing.
  always_comb begin
    is_forwarded: cover (rst_n && enter_i && follows && 32'(count) > 1);
    has_to_wait: cover (rst_n && next_q && !may_enter && 32'(count) < Slots);
  end

endmodule
