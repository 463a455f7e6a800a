// Copyright Selvedge contributors. Licensed under the Apache License, Version 2.0; see LICENSE.
// SPDX-License-Identifier: Apache-2.0

// context_stage: an event is offered with the context that the event of its queue pair before it left behind, be it in
// this very cycle, and whatever comes in between: the hazard of a pipelined read and write. An event that is offered
// stays until it is taken, and waits no longer than it must. For any queue pair, by induction.
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

  // The chosen queue pair's context, and whether it was ever written; whether a module has an event of it.
  logic [ContextBits-1:0] last_q, last;
  logic known_q = 1'b0, in_flight_q = 1'b0, known, in_flight, leaves;

  assign leaves    = leave_i && done_qp == chosen_q;
  assign last      = leaves ? done_ctx_i : last_q;
  assign known     = leaves || known_q;
  assign in_flight = in_flight_q && !leaves;

  always_ff @(posedge clk_i) begin
    if (rst_n) begin
      if (open_i && open_qp_i == chosen_q) begin
        last_q  <= open_ctx_i;
        known_q <= 1'b1;
      end else begin
        last_q  <= last;
        known_q <= known;
      end
      in_flight_q <= in_flight || (valid && ready_i && event_qp == chosen_q);
    end
  end

  // An event that is offered, and was not taken in the last cycle.
  logic offered_q = 1'b0;
  logic [QpBits-1:0] offered_qp_q;
  logic [ContextBits-1:0] offered_ctx_q;
  always_ff @(posedge clk_i) begin
    offered_q     <= rst_n && valid && !ready_i;
    offered_qp_q  <= event_qp;
    offered_ctx_q <= ctx;
  end

  // Of the chosen queue pair, in the interlock; and whether the event that is offered or waits, and the one
  // whose context is fetched, are of it.
  logic [7:0] held;
  logic waits, fetched;
  for (genvar i = 0; i < 8; i++) begin : gen_held
    assign held[i] = u_dut.u_interlock.valid_q[i] && u_dut.u_interlock.event_q[i][1+:QpBits] == chosen_q;
  end
  assign waits   = u_dut.held_q && u_dut.qp_q == chosen_q;
  assign fetched = u_dut.fetched_q && u_dut.fetched_qp_q == chosen_q;

  always_comb begin
    // The owner leaves only what is in flight, and opens a queue pair only while no event of it is in flight or waits,
    // nor in a cycle in which another leaves.
    assume (!leave_i || done_valid);
    assume (!open_i || (!leave_i && !((in_flight_q || waits || fetched) && open_qp_i == chosen_q)));
    assume (!(open_i && valid_i && open_qp_i == qp_i));
    if (rst_n) begin
      reads_what_was_written: assert (!(valid && event_qp == chosen_q && known) || ctx == last);
      never_twice: assert (!(valid && event_qp == chosen_q) || !in_flight);
      never_in_vain: assert (!(waits && !in_flight && !u_dut.u_interlock.valid_q[7]) || valid);
      stays: assert (!offered_q || (valid && event_qp == offered_qp_q));
      stays_with_context: assert (!(offered_q && offered_qp_q == chosen_q && known_q) || ctx == offered_ctx_q);
      // Invariants.
      memory_is_last: assert (!known_q || u_dut.u_contexts.memory[chosen_q] == last_q);
      has_context: assert (!(waits && known_q && !in_flight_q) || u_dut.ctx_q == last_q);
      fetches_context: assert (!(fetched && known_q && !u_dut.is_old_q && !in_flight_q && !waits)
          || u_dut.fetched_ctx == last_q);
      fetched_is_of_queue_pair: assert (!u_dut.fetched_q || u_dut.fetched_event_q == u_dut.fetched_qp_q);
      old_is_fetched: assert (!u_dut.is_old_q || u_dut.fetched_q);
      fetched_kinds: assert (!u_dut.fetched_q || !u_dut.fetched_kind_q);
      held_kinds: assert (!u_dut.held_q || !kind);
      in_flight_is_held: assert (in_flight_q == |held);
      held_once: assert ((held & (held - 8'd1)) == 8'd0);
      event_is_of_queue_pair: assert (!u_dut.held_q || event_qp == u_dut.qp_q);
      slots_are_lowest: assert ((u_dut.u_interlock.valid_q & (u_dut.u_interlock.valid_q + 8'd1)) == 8'd0);
      busy_is_held: assert (!waits || u_dut.u_interlock.busy_q == held);
      kinds: assert (!kind || !valid);
      offered_waits: assert (!offered_q || (u_dut.held_q && u_dut.qp_q == offered_qp_q));
      offered_is_last: assert (!(offered_q && offered_qp_q == chosen_q && known_q) || offered_ctx_q == last_q);
      offered_is_alone: assert (!(offered_q && offered_qp_q == chosen_q) || !in_flight_q);
    end
  end

  logic unused;
  assign unused = done_kind;

  // It happens: the proofs above are not about nothing.
  always_comb begin
    second_event: cover (rst_n && valid && event_qp == chosen_q && known_q && ctx != '0);
    is_forwarded: cover (rst_n && valid && ready_i && waits && leaves);
    is_read_again: cover (rst_n && fetched && u_dut.is_old_q);
    is_kept: cover (rst_n && waits && u_dut.follows && leave_i && !ready_i);
    has_to_wait: cover (rst_n && waits && !valid && in_flight);
  end

endmodule
