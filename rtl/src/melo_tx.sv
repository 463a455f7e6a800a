// Copyright Selvedge contributors. Licensed under the Apache License, Version 2.0; see LICENSE.
// SPDX-License-Identifier: Apache-2.0

// MELO's sender (section 3.2.4): the receiver's bitmap, rebuilt from NACKs in a pool of the sender's own, and which
// packet to send. Contexts of connections and the shared pool are inside. As the paper writes it, bits are recorded,
// released and searched block by block, so an event takes
//
//   3 cycles   a transmission that is no retransmission, an acknowledgement that tells nothing new
//   more       one per block that it takes, gives back or searches, and up to eight for the ends of a NACK's holes
//
// 1. Each hole that a NACK reports is sent again once, oldest first. If that is lost, too, only a timeout repairs it:
//    then everything is sent again from the front.
// 2. If the pool has too few blocks to record a NACK, the sender goes back as after a timeout (section 3.2.5).
module melo_tx #(
  parameter int unsigned Blocks = 128,
  parameter int unsigned Connections = 64,
  localparam int unsigned QpBits = $clog2(Connections),
  localparam int unsigned CountBits = $clog2(Blocks + 1)
) (
  input  logic clk_i,
  input  logic rst_ni,

  // New packets are sent while fewer than this are beyond the first unacknowledged one.
  input  logic [23:0] cap_i,

  input  logic valid_i,
  output logic ready_o,
  // 0 ACK, 1 NACK with holes, 2 the link is free, 3 the timer has fired.
  input  logic [1:0] kind_i,
  input  logic [QpBits-1:0] qp_i,
  // The next packet that the receiver expects; if the link is free, where the packets to send end.
  input  logic [23:0] cum_ack_i,
  // The packet that occasioned the NACK.
  input  logic [23:0] sack_i,
  // {start 16, length 16}, the newest in the highest bits.
  input  logic [2:0][31:0] holes_i,

  output logic valid_o,
  input  logic ready_i,
  // psn_o is sent; again_o: it was sent before.
  output logic send_o,
  output logic again_o,
  output logic [23:0] psn_o,
  // The NACK began the repair of a loss.
  output logic loss_o,
  output logic [23:0] acked_o,
  output logic [23:0] sent_o,
  // Something waits to be sent again.
  output logic waits_o,
  output logic [CountBits-1:0] free_o
);

  typedef struct packed {
    // The first unacknowledged packet.
    logic [23:0] first;
    // One past the last packet that a NACK told of.
    logic [23:0] high;
    // The blocks that hold the first and the last bit.
    logic [7:0] start_block;
    logic [7:0] end_block;
    // Holes before this one were sent again. The block holds the packet before it, or the first one.
    logic [23:0] searched;
    logic [7:0] searched_block;
    // The hole to send again.
    logic has_lost;
    logic [23:0] lost;
    // The next packet in order; goes back at a timeout.
    logic [23:0] next;
    // One past the highest packet that was ever sent.
    logic [23:0] sent;
    // A loss is being repaired until the first unacknowledged packet is this one.
    logic [23:0] recover;
  } ctx_t;

  typedef enum logic [1:0] {
    Ack,
    Nack,
    Free,
    Timeout
  } kind_e;

  typedef enum logic [3:0] {
    Clear,
    Idle,
    Decide,
    // The front moves to cum_q, over a block per cycle.
    Advance,
    // Whether the NACK tells anything new.
    News,
    // Bits up to the targets of a NACK are appended, of a block per cycle.
    Push,
    // The next clear bit, a block per cycle.
    Search,
    // All blocks return to the pool.
    GoBack,
    Reply
  } state_e;

  // Before another, less than 2^23 packets away.
  function automatic logic is_before(logic [23:0] a, logic [23:0] b);
    return $signed(a - b) < $signed(24'd0);
  endfunction
  function automatic logic [23:0] nearest(logic [23:0] a, logic [23:0] b);
    return is_before(a, b) ? a : b;
  endfunction
  // The first packet of the block behind this one's.
  function automatic logic [23:0] behind_block(logic [20:0] block);
    return {block + 21'd1, 3'd0};
  endfunction

  state_e state_d, state_q;
  ctx_t ctx_read, ctx_d, ctx_q;
  kind_e kind_q;
  logic [QpBits-1:0] qp_q, clear_q;
  logic [23:0] cum_q, sack_q;
  logic [2:0][31:0] holes_q;
  logic send_d, send_q, again_d, again_q, loss_d, loss_q;
  logic [23:0] psn_d, psn_q;
  // Which of a NACK's targets is next; the search has stepped into the next block.
  logic [2:0] target_index_d, target_index_q;
  logic stepped_d, stepped_q;
  // The NACK has moved the front and is still to be read.
  logic news_is_due_d, news_is_due_q;
  logic write, accept;

  logic pool_ready, take, link, give, set;
  logic [7:0] take_block, take_bits, block, bits, next_block, mask;

  context_memory #(.Width($bits(ctx_t)), .Depth(Connections)) u_contexts (
    .clk_i,
    .read_i(accept),
    .read_address_i(qp_i),
    .read_data_o(ctx_read),
    .write_i(write),
    .write_address_i(state_q == Clear ? clear_q : qp_q),
    .write_data_i(state_q == Clear ? ctx_t'('0) : ctx_q)
  );

  melo_pool #(.Blocks(Blocks)) u_pool (
    .clk_i,
    .rst_ni,
    .ready_o(pool_ready),
    .free_o,
    .take_i(take),
    .take_block_o(take_block),
    .take_bits_i(take_bits),
    .link_i(link),
    .link_block_i(ctx_q.end_block),
    .give_i(give),
    .give_block_i(ctx_q.start_block),
    .set_i(set),
    .set_mask_i(take_bits),
    .block_i(block),
    .bits_o(bits),
    .next_o(next_block)
  );

  assign accept  = valid_i & ready_o;
  assign ready_o = state_q == Idle;
  assign valid_o = state_q == Reply;

  // The pool's read port: the block searched, the last one while bits are appended, else the first one.
  always_comb begin
    unique case (state_q)
      Push:    block = ctx_q.end_block;
      Search:  block = ctx_q.searched_block;
      default: block = ctx_q.start_block;
    endcase
  end

  // Front.
  logic is_empty;
  logic [23:0] moved_to;
  assign is_empty = ctx_q.first == ctx_q.high;
  assign moved_to = nearest(nearest(cum_q, ctx_q.high), behind_block(ctx_q.first[23:3]));

  // News.
  logic is_news, is_repairing, has_room;
  logic [20:0] last_block, held, wanted;
  assign is_news      = is_before(sack_q, ctx_q.next) & ~is_before(sack_q, ctx_q.high) & is_before(ctx_q.first, sack_q);
  assign is_repairing = is_before(ctx_q.first, ctx_q.recover);
  assign last_block   = ctx_q.high[23:3] - 21'(ctx_q.high[2:0] == 3'd0);
  assign held         = is_empty ? '0 : last_block - ctx_q.first[23:3] + 21'd1;
  assign wanted       = sack_q[23:3] - ctx_q.first[23:3] + 21'd1;
  assign has_room     = wanted - held <= 21'(free_o);

  // Targets: the first packet of all, if nothing is recorded yet, is missing; then packets between holes have arrived
  // and holes are missing, oldest first; and the packet itself has arrived.
  logic [23:0] hole_start, goal, appended_to;
  logic [3:0] push_count;
  logic [1:0] hole_index;
  logic [15:0] hole_ahead;
  logic push_bit, is_pushed, takes_block;
  assign hole_index = target_index_q > 3'd4 ? 2'd2 : target_index_q > 3'd2 ? 2'd1 : 2'd0;
  assign hole_ahead = holes_q[hole_index][31:16] - cum_q[15:0];
  assign hole_start = cum_q + 24'(hole_ahead);
  assign push_bit   = target_index_q[0];
  always_comb begin
    unique case (target_index_q)
      3'd0:             goal = is_empty ? ctx_q.first + 24'd1 : ctx_q.high;
      3'd1, 3'd3, 3'd5: goal = nearest(hole_start, sack_q);
      3'd7:             goal = sack_q + 24'd1;
      default:          goal = nearest(hole_start + 24'(holes_q[hole_index][15:0]), sack_q);
    endcase
    // A hole without length is none.
    if (target_index_q != 3'd0 && target_index_q != 3'd7 && holes_q[hole_index][15:0] == '0) goal = ctx_q.high;
  end
  assign is_pushed   = ~is_before(ctx_q.high, goal);
  assign appended_to = nearest(goal, behind_block(ctx_q.high[23:3]));
  assign push_count  = 4'(appended_to - ctx_q.high);
  assign takes_block = is_empty | (ctx_q.high[2:0] == 3'd0);
  // Up to eight ones from the packet's own place on.
  assign mask      = (push_count[3] ? 8'hff : (8'd1 << push_count[2:0]) - 8'd1) << ctx_q.high[2:0];
  assign take_bits = mask & {8{push_bit}};

  // Search.
  logic [7:0] shifted, unused_mask;
  logic [2:0] length;
  logic full;
  logic [3:0] ones;
  logic [23:0] clear_at;
  run_group u_run (
    .bits_i(shifted),
    .full_o(full),
    .length_o(length),
    .mask_o(unused_mask)
  );
  assign shifted  = bits >> ctx_q.searched[2:0];
  assign ones     = full ? 4'd8 : {1'b0, length};
  assign clear_at = ctx_q.searched + 24'(ones);

  always_comb begin
    state_d        = state_q;
    ctx_d          = ctx_q;
    target_index_d = target_index_q;
    stepped_d      = stepped_q;
    news_is_due_d  = news_is_due_q;
    send_d         = send_q;
    again_d        = again_q;
    psn_d          = psn_q;
    loss_d         = loss_q;
    write          = 1'b0;
    take           = 1'b0;
    link           = 1'b0;
    give           = 1'b0;
    set            = 1'b0;

    unique case (state_q)
      Clear: begin
        // After reset: every connection begins at PSN 0.
        write = 1'b1;
        if (clear_q == QpBits'(Connections - 1) && pool_ready) state_d = Idle;
      end

      Idle: begin
        if (accept) state_d = Decide;
      end

      Decide: begin
        ctx_d         = ctx_read;
        send_d        = 1'b0;
        again_d       = 1'b0;
        psn_d         = '0;
        loss_d        = 1'b0;
        stepped_d     = 1'b0;
        news_is_due_d = 1'b0;
        state_d       = Reply;
        unique case (kind_q)
          Ack, Nack: begin
            // Nothing that was never sent is acknowledged.
            if (!is_before(ctx_read.sent, cum_q)) begin
              if (is_before(ctx_read.first, cum_q)) begin
                state_d = Advance;
              end else if (kind_q == Nack) begin
                state_d = News;
              end
            end
          end

          Free: begin
            if (ctx_read.has_lost) begin
              send_d  = 1'b1;
              again_d = 1'b1;
              psn_d   = ctx_read.lost;
              state_d = Search;
            end else if (is_before(ctx_read.next, cum_q) && ctx_read.next - ctx_read.first < cap_i) begin
              send_d     = 1'b1;
              again_d    = is_before(ctx_read.next, ctx_read.sent);
              psn_d      = ctx_read.next;
              ctx_d.next = ctx_read.next + 24'd1;
              if (!again_d) ctx_d.sent = ctx_d.next;
            end
          end

          default: state_d = GoBack;
        endcase
      end

      Advance: begin
        if (is_empty || !is_before(ctx_q.first, cum_q)) begin
          ctx_d.first = cum_q;
          if (is_before(ctx_q.high, cum_q)) ctx_d.high = cum_q;
          if (is_before(ctx_q.next, cum_q)) ctx_d.next = cum_q;
          // What lies behind comes along, so that comparisons remain valid.
          if (is_before(ctx_q.searched, cum_q)) ctx_d.searched = cum_q;
          if (is_before(ctx_q.recover, cum_q)) ctx_d.recover = cum_q;
          state_d = kind_q == Nack ? News : Reply;
          if (ctx_q.has_lost && is_before(ctx_q.lost, cum_q)) begin
            state_d       = Search;
            news_is_due_d = kind_q == Nack;
          end
        end else begin
          ctx_d.first = moved_to;
          give        = moved_to == ctx_q.high || moved_to[2:0] == 3'd0;
          if (moved_to != ctx_q.high && moved_to[2:0] == 3'd0) ctx_d.start_block = next_block;
        end
      end

      News: begin
        state_d        = Reply;
        target_index_d = 3'd0;
        stepped_d      = 1'b0;
        news_is_due_d  = 1'b0;
        if (is_news) begin
          loss_d  = ~is_repairing;
          state_d = has_room ? Push : GoBack;
          if (has_room && !is_repairing) ctx_d.recover = ctx_q.next;
        end
      end

      Push: begin
        if (!is_pushed) begin
          take       = takes_block;
          link       = ~is_empty;
          set        = ~takes_block;
          ctx_d.high = appended_to;
          if (takes_block) ctx_d.end_block = take_block;
          if (is_empty) ctx_d.start_block = take_block;
        end
        if (is_pushed || appended_to == goal) begin
          target_index_d = target_index_q + 3'd1;
          if (target_index_q == 3'd7) begin
            state_d = ctx_q.has_lost ? Reply : Search;
          end
        end
      end

      Search: begin
        ctx_d.has_lost = 1'b0;
        if (!is_before(ctx_q.first, ctx_q.searched) && !stepped_q
            && (ctx_q.searched != ctx_q.first || ctx_q.searched_block != ctx_q.start_block)) begin
          // From the front.
          ctx_d.searched       = ctx_q.first;
          ctx_d.searched_block = ctx_q.start_block;
        end else if (!is_before(ctx_q.searched, ctx_q.high)) begin
          state_d = Reply;
        end else if (ctx_q.searched[2:0] == 3'd0 && is_before(ctx_q.first, ctx_q.searched) && !stepped_q) begin
          ctx_d.searched_block = next_block;
          stepped_d            = 1'b1;
        end else if (4'(ctx_q.searched[2:0]) + ones < 4'd8) begin
          // All bits behind the last packet are clear.
          ctx_d.has_lost = is_before(clear_at, ctx_q.high);
          ctx_d.lost     = clear_at;
          ctx_d.searched = ctx_d.has_lost ? clear_at + 24'd1 : ctx_q.high;
          state_d        = Reply;
        end else begin
          ctx_d.searched = clear_at;
          stepped_d      = 1'b0;
        end
        if (state_d == Reply && news_is_due_q) state_d = News;
      end

      GoBack: begin
        give = ~is_empty;
        if (is_empty || ctx_q.start_block == ctx_q.end_block) begin
          ctx_d.high     = ctx_q.first;
          ctx_d.searched = ctx_q.first;
          ctx_d.has_lost = 1'b0;
          ctx_d.next     = ctx_q.first;
          ctx_d.recover  = ctx_q.sent;
          state_d        = Reply;
        end else begin
          ctx_d.start_block = next_block;
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
      kind_q  <= kind_e'(kind_i);
      qp_q    <= qp_i;
      cum_q   <= cum_ack_i;
      sack_q  <= sack_i;
      holes_q <= holes_i;
    end
    ctx_q          <= ctx_d;
    target_index_q <= target_index_d;
    stepped_q      <= stepped_d;
    news_is_due_q  <= news_is_due_d;
    send_q         <= send_d;
    again_q        <= again_d;
    psn_q          <= psn_d;
    loss_q         <= loss_d;
  end

  assign send_o  = send_q;
  assign again_o = again_q;
  assign psn_o   = psn_q;
  assign loss_o  = loss_q;
  assign acked_o = ctx_q.first;
  assign sent_o  = ctx_q.sent;
  assign waits_o = ctx_q.has_lost | is_before(ctx_q.next, ctx_q.sent);

endmodule
