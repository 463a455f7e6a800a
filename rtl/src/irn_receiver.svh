// Generated from crates/transport/src/recovery/irn/context.rs by `cargo xtask rtl context`: do not edit.

// Context of receive_data. Most significant field first.
typedef struct packed {
  // The next packet; all before it have arrived.
  logic [23:0] expected;
  // Messages completed, modulo 2^24.
  logic [23:0] msn;
  // With map2, the state of the packets from `expected` on: see arrival_e.
  logic [W-1:0] map1;
  // The packet ends a message.
  logic [W-1:0] map2;
} receiver_ctx_t;
