// Copyright Selvedge contributors. Licensed under the Apache License, Version 2.0; see LICENSE.
// SPDX-License-Identifier: Apache-2.0

// MELO's receiver (section 3.2): a data packet has arrived. Contexts of connections, 160 bits each, and the shared pool
// are inside. A connection can be swapped for another one (section 3.2.5); the host chooses which, and keeps contexts
// and bits of those off the chip. As the paper writes it, allocation of a gap and release of a run go block by block,
// so a packet takes
//
//   3 cycles                        in order, old, refused, or in a block that is there
//   3 + blocks taken                beyond the last block: one per eight packets of a gap
//   3 + blocks visited by the run   at the front, with others behind it
module melo_rx #(
  parameter int unsigned Blocks = 128,
  // Connections on the chip.
  parameter int unsigned Connections = 64,
  // Bits of a ctx_t.
  localparam int unsigned ContextBits = 160,
  localparam int unsigned QpBits = $clog2(Connections),
  localparam int unsigned CountBits = $clog2(Blocks + 1)
) (
  input  logic clk_i,
  input  logic rst_ni,

  // Slots of a connection's reorder buffer: packets as far ahead as this are refused.
  input  logic [23:0] slots_i,

  input  logic valid_i,
  output logic ready_o,
  input  logic [QpBits-1:0] qp_i,
  input  logic [23:0] psn_i,

  output logic valid_o,
  input  logic ready_i,
  // 0 in order, 1 at the front and a run behind it, 2 buffered, 3 duplicate, 4 refused.
  output logic [2:0] verdict_o,
  // Answer with a NACK: a hole has formed. Refused packets are not answered.
  output logic nack_o,
  output logic [23:0] cum_ack_o,
  // {start 16, length 16}, the newest in the highest bits.
  output logic [2:0][31:0] holes_o,
  output logic [CountBits-1:0] free_o,

  // A connection leaves the chip, or comes to the place swap_qp_i with the context swap_ctx_i. Goes before packets.
  input  logic swap_valid_i,
  output logic swap_ready_o,
  input  logic swap_load_i,
  input  logic [QpBits-1:0] swap_qp_i,
  input  logic [ContextBits-1:0] swap_ctx_i,
  // It is done. One that comes is not ok if the pool has too few blocks: then it stays off the chip.
  output logic swapped_valid_o,
  input  logic swapped_ready_i,
  output logic swapped_ok_o,
  // The context of one that leaves.
  output logic [ContextBits-1:0] swapped_ctx_o,
  // Its bits.
  output logic out_valid_o,
  input  logic out_ready_i,
  output logic [7:0] out_bits_o,
  // The bits of one that comes.
  input  logic in_valid_i,
  output logic in_ready_o,
  input  logic [7:0] in_bits_i
);

  typedef struct packed {
    // RCV.NXT.
    logic [23:0] first;
    // One past RCV.HIGH.
    logic [23:0] high;
    // The blocks that hold the first and the last bit.
    logic [7:0] start_block;
    logic [7:0] end_block;
    logic [2:0][31:0] holes;
  } ctx_t;

  typedef enum logic [3:0] {
    Clear,
    Idle,
    Decide,
    Push,
    Run,
    Reply,
    // Its context is read; bits move; it is done.
    Swap,
    Swapping,
    Swapped
  } state_e;

  localparam logic [2:0] InOrder = 3'd0;
  localparam logic [2:0] Released = 3'd1;
  localparam logic [2:0] Buffered = 3'd2;
  localparam logic [2:0] Duplicate = 3'd3;
  localparam logic [2:0] Refused = 3'd4;

  state_e state_d, state_q;
  ctx_t ctx_read, ctx_d, ctx_q, ctx;
  logic [QpBits-1:0] qp_q, clear_q;
  logic [23:0] psn_q;
  logic [2:0] verdict_d, verdict_q;
  logic nack_d, nack_q;
  // Blocks that are still to be taken.
  logic [20:0] needed_d, needed_q;
  logic write, accept, swap_accept, is_load_q, is_swapping;

  logic pool_ready, take, link, give, set;
  logic [7:0] take_block, take_bits, block, bits, next_block, mask;
  logic hole_add, hole_fill;
  logic [15:0] hole_psn, hole_length;
  logic [2:0][31:0] holes;

  context_memory #(.Width($bits(ctx_t)), .Depth(Connections)) u_contexts (
    .clk_i,
    .read_i(accept | swap_accept),
    .read_address_i(swap_accept ? swap_qp_i : qp_i),
    .read_data_o(ctx_read),
    .write_i(write),
    .write_address_i(state_q == Clear ? clear_q : qp_q),
    .write_data_i(state_q == Clear ? ctx_t'('0) : ctx_q)
  );

  // The pool works for packets or for a swap.
  logic swap_ready, swap_valid, swap_ok, swap_take, swap_link, swap_give;
  logic [CountBits-1:0] swap_count;
  logic [7:0] swap_start, swap_end, swap_take_bits, swap_link_block, swap_give_block, swap_block;
  assign is_swapping = state_q == Swapping;

  melo_swap #(.Blocks(Blocks)) u_swap (
    .clk_i,
    .rst_ni,
    .valid_i(state_q == Swap),
    .ready_o(swap_ready),
    .load_i(is_load_q),
    .count_i(swap_count),
    .start_i(ctx_read.start_block),
    .valid_o(swap_valid),
    .ready_i(swapped_valid_o & swapped_ready_i),
    .ok_o(swap_ok),
    .start_o(swap_start),
    .end_o(swap_end),
    .out_valid_o,
    .out_ready_i,
    .out_bits_o,
    .in_valid_i,
    .in_ready_o,
    .in_bits_i,
    .free_i(free_o),
    .take_o(swap_take),
    .take_block_i(take_block),
    .take_bits_o(swap_take_bits),
    .link_o(swap_link),
    .link_block_o(swap_link_block),
    .give_o(swap_give),
    .give_block_o(swap_give_block),
    .block_o(swap_block),
    .bits_i(bits),
    .next_i(next_block)
  );

  melo_pool #(.Blocks(Blocks)) u_pool (
    .clk_i,
    .rst_ni,
    .ready_o(pool_ready),
    .free_o,
    .take_i(is_swapping ? swap_take : take),
    .take_block_o(take_block),
    .take_bits_i(is_swapping ? swap_take_bits : take_bits),
    .link_i(is_swapping ? swap_link : link),
    .link_block_i(is_swapping ? swap_link_block : ctx_q.end_block),
    .give_i(is_swapping ? swap_give : give),
    .give_block_i(is_swapping ? swap_give_block : ctx_q.start_block),
    .set_i(set),
    .set_mask_i(mask),
    .block_i(is_swapping ? swap_block : block),
    .bits_o(bits),
    .next_o(next_block)
  );

  melo_holes u_holes (
    .holes_i(ctx_read.holes),
    .add_i(hole_add),
    .length_i(hole_length),
    .fill_i(hole_fill),
    .psn_i(hole_psn),
    .holes_o(holes)
  );

  // Blocks that hold the packets from `first` to before `high`.
  function automatic logic [20:0] blocks_of(logic [23:0] first, logic [23:0] high);
    logic [20:0] last;
    last = high[23:3] - 21'(high[2:0] == 3'd0);
    return first == high ? '0 : last - first[23:3] + 21'd1;
  endfunction

  logic [23:0] swap_first, swap_high;
  assign {swap_first, swap_high} = is_load_q ? {ctx_q.first, ctx_q.high} : {ctx_read.first, ctx_read.high};
  assign swap_count = CountBits'(blocks_of(swap_first, swap_high));

  // What the packet is to its connection.
  logic [23:0] ahead, beyond;
  logic [20:0] first_block, last_block, psn_block;
  logic is_empty, is_old, is_first, is_far, is_late, in_start, in_end;
  logic [20:0] held, wanted, more;

  assign ctx      = ctx_read;
  assign ahead    = psn_q - ctx.first;
  assign beyond   = psn_q - ctx.high;
  // Numbers of blocks, counted from packet 0.
  assign first_block = ctx.first[23:3];
  assign last_block  = ctx.high[23:3] - 21'(ctx.high[2:0] == 3'd0);
  assign psn_block   = psn_q[23:3];
  assign is_empty = ctx.first == ctx.high;
  assign is_old   = ahead[23];
  assign is_first = ahead == '0;
  assign is_far   = ahead >= slots_i;
  assign is_late  = beyond[23];
  assign in_start = psn_block == first_block;
  assign in_end   = psn_block == last_block;
  assign held     = blocks_of(ctx.first, ctx.high);
  assign wanted   = psn_block - first_block + 21'd1;
  assign more     = wanted - held;

  // The block that it lies in, where it can be reached: the first or the last one.
  logic is_reached, is_set;
  assign is_reached = in_start | in_end;
  assign mask       = 8'd1 << psn_q[2:0];
  assign block      = state_q != Decide ? ctx_q.start_block
      : is_first | (is_late & in_start) ? ctx.start_block : ctx.end_block;
  assign is_set     = |(bits & mask);

  // A hole forms beyond the last packet; below it, one may be filled. Of a packet that is refused, nothing is taken.
  assign hole_add    = ~is_late;
  assign hole_fill   = is_late;
  assign hole_psn    = is_late ? psn_q[15:0] : ctx.high[15:0];
  assign hole_length = beyond[15:0];

  // The run in the first block.
  logic [7:0] shifted;
  logic [3:0] ones;
  logic [23:0] to;
  logic at_end_of_block, reaches_high;
  logic full;
  logic [2:0] length;
  logic [7:0] unused_mask;
  run_group u_run (
    .bits_i(shifted),
    .full_o(full),
    .length_o(length),
    .mask_o(unused_mask)
  );
  assign shifted         = bits >> ctx_q.first[2:0];
  assign ones            = full ? 4'd8 : {1'b0, length};
  assign to              = ctx_q.first + 24'(ones);
  assign at_end_of_block = to[2:0] == 3'd0 && ones != 4'd0;
  assign reaches_high    = to == ctx_q.high;

  assign accept       = valid_i & ready_o;
  assign ready_o      = (state_q == Idle) & ~swap_valid_i;
  assign valid_o      = state_q == Reply;
  assign swap_accept  = swap_valid_i & swap_ready_o;
  assign swap_ready_o = state_q == Idle;

  assign swapped_valid_o = state_q == Swapped;
  assign swapped_ok_o    = swap_ok;
  assign swapped_ctx_o   = ctx_q;

  always_comb begin
    state_d     = state_q;
    ctx_d       = ctx_q;
    verdict_d   = verdict_q;
    nack_d      = nack_q;
    needed_d    = needed_q;
    write       = 1'b0;
    take        = 1'b0;
    take_bits   = '0;
    link        = 1'b0;
    give        = 1'b0;
    set         = 1'b0;

    unique case (state_q)
      Clear: begin
        // After reset: every connection begins at PSN 0.
        write = 1'b1;
        if (clear_q == QpBits'(Connections - 1) && pool_ready) state_d = Idle;
      end

      Idle: begin
        if (accept) state_d = Decide;
        if (swap_accept) begin
          state_d = Swap;
          ctx_d   = ctx_t'(swap_ctx_i);
        end
      end

      Decide: begin
        state_d   = Reply;
        ctx_d     = ctx;
        nack_d    = 1'b0;
        verdict_d = Refused;
        if (is_old) begin
          verdict_d = Duplicate;
        end else if (is_first && is_empty) begin
          verdict_d   = InOrder;
          ctx_d.first = ctx.first + 24'd1;
          ctx_d.high  = ctx_d.first;
        end else if (is_first) begin
          verdict_d   = Released;
          set         = 1'b1;
          ctx_d.holes = holes;
          state_d     = Run;
        end else if (is_far) begin
          verdict_d = Refused;
        end else if (is_late) begin
          // Else in the middle, which cannot be reached.
          if (is_reached && is_set) begin
            verdict_d = Duplicate;
          end else if (is_reached) begin
            verdict_d   = Buffered;
            set         = 1'b1;
            ctx_d.holes = holes;
          end
        end else if (more <= 21'(free_o)) begin
          verdict_d = Buffered;
          if (beyond != '0) begin
            nack_d      = 1'b1;
            ctx_d.holes = holes;
          end
          ctx_d.high = psn_q + 24'd1;
          needed_d   = more;
          if (more == '0) begin
            set = 1'b1;
          end else begin
            state_d = Push;
          end
        end
      end

      Push: begin
        // The first block of all has none before it.
        take            = 1'b1;
        link            = needed_q != psn_block - ctx_q.first[23:3] + 21'd1;
        take_bits       = needed_q == 21'd1 ? mask : '0;
        ctx_d.end_block = take_block;
        if (!link) ctx_d.start_block = take_block;
        needed_d = needed_q - 21'd1;
        if (needed_q == 21'd1) state_d = Reply;
      end

      Run: begin
        ctx_d.first = to;
        if (reaches_high) begin
          give    = 1'b1;
          state_d = Reply;
        end else if (at_end_of_block) begin
          give              = 1'b1;
          ctx_d.start_block = next_block;
        end else begin
          state_d = Reply;
        end
      end

      Swap: begin
        if (!is_load_q) ctx_d = ctx_read;
        if (swap_ready) state_d = Swapping;
      end

      Swapping: begin
        ctx_d.start_block = swap_start;
        ctx_d.end_block   = swap_end;
        if (swap_valid) state_d = Swapped;
      end

      Swapped: begin
        if (swapped_ready_i) begin
          write   = is_load_q & swap_ok;
          state_d = Idle;
        end
      end

      default: begin
        if (ready_i) begin
          write   = 1'b1;
          state_d = Idle;
        end
      end
    endcase
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= Clear;
      clear_q <= '0;
    end else begin
      state_q <= state_d;
      if (state_q == Clear && clear_q != QpBits'(Connections - 1)) clear_q <= clear_q + QpBits'(1);
    end
  end

  always_ff @(posedge clk_i) begin
    if (accept) begin
      qp_q  <= qp_i;
      psn_q <= psn_i;
    end
    if (swap_accept) begin
      qp_q      <= swap_qp_i;
      is_load_q <= swap_load_i;
    end
    ctx_q     <= ctx_d;
    verdict_q <= verdict_d;
    nack_q    <= nack_d;
    needed_q  <= needed_d;
  end

  assign verdict_o = verdict_q;
  assign nack_o    = nack_q;
  assign cum_ack_o = ctx_q.first;
  assign holes_o   = ctx_q.holes;

endmodule
