// Copyright Selvedge contributors. Licensed under the Apache License, Version 2.0; see LICENSE.
// SPDX-License-Identifier: Apache-2.0

// context_stage: an event is offered with the context that the event of its queue pair before it left behind, whatever
// comes in between: the hazard of a pipelined read and write. For any queue pair, by induction.
module prove_context_stage #(
  parameter int unsigned QueuePairs = 4,
  parameter int unsigned ContextBits = 4,
  localparam int unsigned QpBits = $clog2(QueuePairs)
) (
  input logic clk_i,
  input logic open_i,
  input logic [QpBits-1:0] open_qp_i,
  input logic [ContextBits-1:0] open_ctx_i,
  input logic valid_i,
  input logic [QpBits-1:0] qp_i,
  input logic ready_i,
  input logic leave_i,
  input logic [ContextBits-1:0] done_ctx_i,
  // Any queue pair; it stays.
  input logic [QpBits-1:0] chosen_i
);

  logic rst_n = 1'b0;
  logic [QpBits-1:0] chosen_q;
  always_ff @(posedge clk_i) begin
    rst_n <= 1'b1;
    if (!rst_n) chosen_q <= chosen_i;
  end

  logic ready, valid, kind, done_valid, done_kind;
  logic [QpBits-1:0] event_qp, done_qp;
  logic [ContextBits-1:0] ctx;

  // The event is its queue pair's number.
  context_stage #(.QueuePairs(QueuePairs), .ContextBits(ContextBits), .EventBits(QpBits)) u_dut (
    .clk_i,
    .rst_ni(rst_n),
    .open_i,
    .open_qp_i,
    .open_ctx_i,
    .valid_i,
    .ready_o(ready),
    .qp_i,
    .kind_i(1'b0),
    .event_i(qp_i),
    .valid_o(valid),
    .ready_i,
    .kind_o(kind),
    .event_o(event_qp),
    .ctx_o(ctx),
    .done_valid_o(done_valid),
    .done_qp_o(done_qp),
    .done_kind_o(done_kind),
    .leave_i,
    .done_ctx_i
  );

  // The chosen queue pair's context, and whether it was ever written; its event in flight, and whether that was read.
  logic [ContextBits-1:0] last_q;
  logic known_q = 1'b0, in_flight_q = 1'b0;

  always_ff @(posedge clk_i) begin
    if (rst_n) begin
      if (leave_i && done_qp == chosen_q) begin
        last_q      <= done_ctx_i;
        known_q     <= 1'b1;
        in_flight_q <= 1'b0;
      end else if (open_i && open_qp_i == chosen_q) begin
        last_q  <= open_ctx_i;
        known_q <= 1'b1;
      end
      if (valid_i && ready && qp_i == chosen_q) in_flight_q <= 1'b1;
    end
  end

  // Of the chosen queue pair, in the interlock.
  logic [7:0] held;
  for (genvar i = 0; i < 8; i++) begin : gen_held
    assign held[i] = u_dut.u_interlock.valid_q[i] && u_dut.u_interlock.event_q[i][1+:QpBits] == chosen_q;
  end

  always_comb begin
    // The owner leaves only what is in flight and what a module has taken, and opens a queue pair only while no event of
    // it is in flight, nor in a cycle in which another leaves.
    assume (!leave_i || (done_valid && !(valid && event_qp == done_qp)));
    assume (!open_i || (!leave_i && !(in_flight_q && open_qp_i == chosen_q)));
    assume (!(open_i && valid_i && open_qp_i == qp_i));
    if (rst_n) begin
      reads_what_was_written: assert (!(valid && event_qp == chosen_q && known_q) || ctx == last_q);
      never_twice: assert (!(valid_i && ready && qp_i == chosen_q) || !in_flight_q);
      // Invariants.
      memory_is_last: assert (!known_q || u_dut.u_contexts.memory[chosen_q] == last_q);
      in_flight_is_held: assert (in_flight_q == |held);
      held_once: assert ((held & (held - 8'd1)) == 8'd0);
      offered_is_in_flight: assert (!(valid && event_qp == chosen_q) || in_flight_q);
      slots_are_lowest: assert ((u_dut.u_interlock.valid_q & (u_dut.u_interlock.valid_q + 8'd1)) == 8'd0);
      kinds: assert (!kind || !valid);
    end
  end

  logic unused;
  assign unused = done_kind;

  // It happens: the proofs above are not about nothing.
  always_comb begin
    second_event: cover (rst_n && valid && event_qp == chosen_q && known_q && ctx != '0);
    has_to_wait: cover (rst_n && valid_i && !ready && qp_i == chosen_q && in_flight_q);
  end

endmodule
