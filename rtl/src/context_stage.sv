// Copyright Selvedge contributors. Licensed under the Apache License, Version 2.0; see LICENSE.
// SPDX-License-Identifier: Apache-2.0

// Contexts of queue pairs between the stream of events and the modules that handle them.
//
// 1. An event enters in one cycle, in which its context is read. In the next cycle the context comes from the memory,
//    and from the one after that the event is offered with it.
// 2. Its queue pair is in flight from when a module takes the event until `leave_i` writes the new context. An event
//    of that queue pair waits that long, and all events behind it.
// 3. A context is forwarded: the waiting event is offered in the cycle in which the one before it leaves, with the
//    context that is written in that cycle. If no module takes it then, it keeps that context.
// 4. What is written while an event's context comes from the memory is forwarded, too, or read again.
// 5. Events leave in the order in which they entered: `done_*` is about the oldest.
module context_stage #(
  parameter int unsigned QueuePairs = 64,
  parameter int unsigned ContextBits = 128,
  // Bits of an event, beside its kind and its queue pair.
  parameter int unsigned EventBits = 29,
  // Kinds of events, told apart where they leave.
  parameter int unsigned KindBits = 1,
  localparam int unsigned QpBits = $clog2(QueuePairs)
) (
  input  logic clk_i,
  input  logic rst_ni,

  // A queue pair begins with a context; not in a cycle in which an event leaves.
  input  logic open_i,
  input  logic [QpBits-1:0] open_qp_i,
  input  logic [ContextBits-1:0] open_ctx_i,

  input  logic valid_i,
  output logic ready_o,
  input  logic [QpBits-1:0] qp_i,
  input  logic [KindBits-1:0] kind_i,
  input  logic [EventBits-1:0] event_i,

  output logic valid_o,
  input  logic ready_i,
  output logic [KindBits-1:0] kind_o,
  output logic [EventBits-1:0] event_o,
  output logic [ContextBits-1:0] ctx_o,

  output logic done_valid_o,
  output logic [QpBits-1:0] done_qp_o,
  output logic [KindBits-1:0] done_kind_o,
  input  logic leave_i,
  input  logic [ContextBits-1:0] done_ctx_i
);

  logic enter, advance, taken, may_take, follows;
  // The event whose context comes from the memory, and whether what comes is old.
  logic fetched_q, is_old_q;
  logic [QpBits-1:0] fetched_qp_q;
  logic [KindBits-1:0] fetched_kind_q;
  logic [EventBits-1:0] fetched_event_q;
  logic [ContextBits-1:0] fetched_ctx;
  // The event that is offered, or waits to be.
  logic held_q;
  logic [QpBits-1:0] qp_q;
  logic [ContextBits-1:0] ctx_q;

  assign valid_o = held_q & may_take;
  assign taken   = valid_o & ready_i;
  assign advance = fetched_q & ~is_old_q & (~held_q | taken);
  assign ready_o = ~fetched_q | advance;
  assign enter   = valid_i & ready_o;
  // Whether the one before leaves in this cycle is left to `valid_o`.
  assign ctx_o   = follows ? done_ctx_i : ctx_q;

  interlock #(.QpBits(QpBits), .KindBits(KindBits), .Slots(8)) u_interlock (
    .clk_i,
    .rst_ni,
    .load_i(advance),
    .load_qp_i(fetched_qp_q),
    .qp_i(qp_q),
    .may_enter_o(may_take),
    .follows_o(follows),
    .enter_i(taken),
    .kind_i(kind_o),
    .valid_o(done_valid_o),
    .qp_o(done_qp_o),
    .kind_o(done_kind_o),
    .leave_i
  );

  context_memory #(.Width(ContextBits), .Depth(QueuePairs)) u_contexts (
    .clk_i,
    .read_i(enter | is_old_q),
    .read_address_i(ready_o ? qp_i : fetched_qp_q),
    .read_data_o(fetched_ctx),
    .write_i(leave_i | open_i),
    .write_address_i(leave_i ? done_qp_o : open_qp_i),
    .write_data_i(leave_i ? done_ctx_i : open_ctx_i)
  );

  logic enters_old, fetches_old;
  assign enters_old  = leave_i & (done_qp_o == qp_i);
  assign fetches_old = leave_i & (done_qp_o == fetched_qp_q);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      fetched_q <= 1'b0;
      is_old_q  <= 1'b0;
      held_q    <= 1'b0;
    end else begin
      if (enter | advance) begin
        fetched_q <= enter;
      end
      is_old_q <= enter ? enters_old : fetched_q & ~advance & fetches_old;
      if (advance | taken) begin
        held_q <= advance;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (enter) begin
      fetched_qp_q    <= qp_i;
      fetched_kind_q  <= kind_i;
      fetched_event_q <= event_i;
    end
    if (advance) begin
      qp_q    <= fetched_qp_q;
      kind_o  <= fetched_kind_q;
      event_o <= fetched_event_q;
    end
    if (advance) begin
      ctx_q <= fetches_old ? done_ctx_i : fetched_ctx;
    end else if (follows & leave_i) begin
      ctx_q <= done_ctx_i;
    end
  end

endmodule
