// Copyright Selvedge contributors. Licensed under the Apache License, Version 2.0; see LICENSE.
// SPDX-License-Identifier: Apache-2.0

// Holds of every sender's context: the modules keep it, whatever acknowledgements say.
function automatic logic is_within(logic [PsnBits-1:0] pointer, logic [PsnBits-1:0] head);
  // From 2^22 behind the head to W ahead of it.
  logic [PsnBits-1:0] offset;
  offset = pointer - head;
  return offset <= PsnBits'(W) || offset >= (PsnBits'(3) << ReachBits);
endfunction

function automatic logic is_behind(logic [PsnBits-1:0] pointer, logic [PsnBits-1:0] head);
  logic [PsnBits-1:0] offset;
  offset = pointer - head;
  return offset[PsnBits-1];
endfunction

function automatic logic is_sacked(logic [W-1:0] sacks, logic [PsnBits-1:0] offset);
  return 32'(offset) < W && sacks[offset[$clog2(W)-1:0]];
endfunction

function automatic logic is_sound(sender_ctx_t ctx);
  logic [PsnBits-1:0] in_flight;
  logic is_waiting;
  in_flight  = ctx.next - ctx.acked;
  is_waiting = ctx.do_retransmit && !is_behind(ctx.retransmit, ctx.acked);
  return in_flight <= PsnBits'(W)
      && is_within(ctx.retransmit, ctx.acked) && is_within(ctx.recover, ctx.acked)
      // Outside recovery nothing is sought, and only the head waits to be sent again.
      && (ctx.in_recovery || !ctx.find_new_hole)
      && (ctx.in_recovery || !is_waiting || ctx.retransmit == ctx.acked)
      // Nothing that lies behind the head waits: acknowledgements that pass it cancel it or move it to the head. Outside
      // recovery, that is because they pass the recovery sequence, too, which lies at the head at most.
      && (!ctx.do_retransmit || !is_behind(ctx.retransmit, ctx.acked))
      && (ctx.in_recovery || ctx.recover == ctx.acked || is_behind(ctx.recover, ctx.acked))
      // What was sent again last, or waits, lies in the bitmap.
      && (is_behind(ctx.retransmit, ctx.acked) || ctx.retransmit - ctx.acked < PsnBits'(W))
      // What waits, the head apart, is not acknowledged.
      && (!is_waiting || ctx.retransmit == ctx.acked
          || !is_sacked(ctx.sacks, ctx.retransmit - ctx.acked));
endfunction
