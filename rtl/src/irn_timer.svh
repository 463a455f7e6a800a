// Generated from crates/transport/src/recovery/irn/context.rs by `cargo xtask rtl context`: do not edit.

// Context of timeout. Most significant field first.
typedef struct packed {
  // As the sender's.
  logic [23:0] next;
  // As the sender's.
  logic [23:0] acked;
  // As the sender's.
  logic [23:0] retransmit;
  // As the sender's.
  logic do_retransmit;
  // As the sender's.
  logic find_new_hole;
  // The timer was set to RTO_low (quickTimeout).
  logic quick;
  // Link rate over the rate that congestion control allows, rounded down.
  logic [23:0] rate_factor;
} timer_ctx_t;
