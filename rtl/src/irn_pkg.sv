// Copyright Selvedge contributors. Licensed under the Apache License, Version 2.0; see LICENSE.
// SPDX-License-Identifier: Apache-2.0

// Constants and functions that IRN's modules share.
package irn_pkg;

  // Width of packet and message sequence numbers.
  parameter int unsigned PsnBits = 24;
  // Pointers more than 2^ReachBits behind the head of the window are moved along with it; acknowledgements from
  // farther away are ignored. See rtl/README.md, policy 1.
  parameter int unsigned ReachBits = 22;
  // Timeouts are extended while the rate is throttled by more than this factor (policy 7).
  parameter int unsigned RateFactorLimit = 4;

  // The 2-bitmap's states (section 5.3.3), as {map2, map1}.
  typedef enum logic [1:0] {
    Absent  = 2'b00,
    Arrived = 2'b01,
    // The packet ends a message: the MSN advances.
    Message = 2'b10,
    // The packet ends a message and completes a receive work request: a CQE is due, too.
    Receive = 2'b11
  } arrival_e;

  // State that a packet's arrival leaves behind, by the low five bits of its BTH opcode (reliable connection).
  function automatic arrival_e arrival_of_opcode(logic [4:0] opcode);
    unique case (opcode)
      // SEND last and only, without and with immediate; WRITE last and only with immediate; SEND last and only with
      // invalidate.
      5'd2, 5'd3, 5'd4, 5'd5, 5'd9, 5'd11, 5'd22, 5'd23: return Receive;
      // WRITE last and only; READ request; the atomics; FLUSH and ATOMIC WRITE.
      5'd8, 5'd10, 5'd12, 5'd19, 5'd20, 5'd28, 5'd29: return Message;
      default: return Arrived;
    endcase
  endfunction

  // Cycles from a module's input to its output, and from one input to the next, by its variant.
  function automatic int unsigned latency(bit pipelined);
    return pipelined ? 4 : 3;
  endfunction
  function automatic int unsigned interval(bit pipelined);
    return pipelined ? 1 : 4;
  endfunction

endpackage
