// Generated from crates/transport/src/recovery/irn/context.rs by `cargo xtask rtl context`: do not edit.

// Context of tx_free and receive_ack. Most significant field first.
typedef struct packed {
  // The next new packet (nextSNtoSend).
  logic [23:0] next;
  // The head: the cumulative acknowledgement (lastAckedPsn).
  logic [23:0] acked;
  // The packet sent again last, or next (retransmitSN).
  logic [23:0] retransmit;
  // The recovery sequence (recoverSN).
  logic [23:0] recover;
  // Packets from `acked` on that were acknowledged selectively.
  logic [W-1:0] sacks;
  // `retransmit` waits to be sent.
  logic do_retransmit;
  // Packets are being recovered.
  logic in_recovery;
  // The next tx_free searches the bitmap.
  logic find_new_hole;
} sender_ctx_t;
