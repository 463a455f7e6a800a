// Copyright Selvedge contributors. Licensed under the Apache License, Version 2.0; see LICENSE.
// SPDX-License-Identifier: Apache-2.0

// Handshake of a pipeline of fixed latency between two valid/ready streams. All stages advance together, when the
// output is empty or taken.
module stream_control #(
  // Cycles from input to output, at least one.
  parameter int unsigned Latency = 3,
  // Cycles from one input to the next, at least one: the initiation interval.
  parameter int unsigned Interval = 1
) (
  input  logic clk_i,
  input  logic rst_ni,

  input  logic valid_i,
  output logic ready_o,

  output logic valid_o,
  input  logic ready_i,

  // Stage registers load.
  output logic en_o
);

  logic [Latency-1:0] valid_d, valid_q;
  logic accept;

  assign valid_o = valid_q[Latency-1];
  assign en_o    = ~valid_o | ready_i;
  assign accept  = valid_i & ready_o;

  if (Latency == 1) begin : gen_one_stage
    assign valid_d = accept;
  end else begin : gen_stages
    assign valid_d = {valid_q[Latency-2:0], accept};
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid_q <= '0;
    end else if (en_o) begin
      valid_q <= valid_d;
    end
  end

  if (Interval == 1) begin : gen_every_cycle
    assign ready_o = en_o;
  end else begin : gen_interval
    localparam int unsigned WaitBits = $clog2(Interval);
    logic [WaitBits-1:0] wait_q;

    assign ready_o = en_o & (wait_q == '0);

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        wait_q <= '0;
      end else if (en_o) begin
        if (accept) begin
          wait_q <= WaitBits'(Interval - 1);
        end else if (wait_q != '0) begin
          wait_q <= wait_q - WaitBits'(1);
        end
      end
    end
  end

endmodule
