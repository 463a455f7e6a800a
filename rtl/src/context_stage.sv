// Copyright Selvedge contributors. Licensed under the Apache License, Version 2.0; see LICENSE.
// SPDX-License-Identifier: Apache-2.0

// Contexts of queue pairs between the stream of events and the modules that handle them.
//
// 1. An event enters in one cycle, in which its context is read, and is offered with it from the next cycle on.
// 2. Its queue pair is in flight from when a module takes the event until `leave_i` writes the new context. An event
//    of that queue pair waits that long, and all events behind it.
// 3. A context is forwarded: the waiting event is offered in the cycle in which the one before it leaves, with the
//    context that is written in that cycle. If no module takes it then, the context is kept, because the one that was
//    read from the memory is old.
// 4. Events leave in the order in which they entered: `done_*` is about the oldest.
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

  logic may_take, forward, enter, taken;
  // An event waits to be taken, and its queue pair.
  logic held_q;
  logic [QpBits-1:0] qp_q;
  // Its context has been written since it was read: it is kept here.
  logic is_kept_q;
  logic [ContextBits-1:0] kept_q, ctx_read;

  assign valid_o = held_q & may_take;
  assign taken   = valid_o & ready_i;
  assign ready_o = ~held_q | taken;
  assign enter   = valid_i & ready_o;
  assign ctx_o   = forward ? done_ctx_i : is_kept_q ? kept_q : ctx_read;

  interlock #(.QpBits(QpBits), .KindBits(KindBits), .Slots(8)) u_interlock (
    .clk_i,
    .rst_ni,
    .qp_i(qp_q),
    .may_enter_o(may_take),
    .forward_o(forward),
    .enter_i(taken),
    .kind_i(kind_o),
    .valid_o(done_valid_o),
    .qp_o(done_qp_o),
    .kind_o(done_kind_o),
    .leave_i
  );

  context_memory #(.Width(ContextBits), .Depth(QueuePairs)) u_contexts (
    .clk_i,
    .read_i(enter),
    .read_address_i(qp_i),
    .read_data_o(ctx_read),
    .write_i(leave_i | open_i),
    .write_address_i(leave_i ? done_qp_o : open_qp_i),
    .write_data_i(leave_i ? done_ctx_i : open_ctx_i)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      held_q <= 1'b0;
    end else if (enter | taken) begin
      held_q <= enter;
    end
  end

  always_ff @(posedge clk_i) begin
    if (enter) begin
      qp_q    <= qp_i;
      kind_o  <= kind_i;
      event_o <= event_i;
    end
    // The memory is read and written in the same cycle, or is written while the event waits.
    if (enter) begin
      is_kept_q <= leave_i & (done_qp_o == qp_i);
    end else if (forward) begin
      is_kept_q <= 1'b1;
    end
    if (enter | forward) begin
      kept_q <= done_ctx_i;
    end
  end

endmodule
