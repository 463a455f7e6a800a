//! Who may wait: admission to a switch's buffer, and what leaving it frees.

use selvedge_telemetry::DropReason;

use crate::config::{BufferConfig, SharedBuffer};
use crate::kernel::partition::Partition;

impl<const RECORDED: bool> Partition<RECORDED> {
    /// Takes `frame` bytes into the buffer, or says why not. Pauses the peer of port `at` where its
    /// class is lossless and the input is filling up.
    #[inline]
    pub(crate) fn admit(&mut self, switch: u32, at: u32, out: u32, frame: u64, class: u8) -> Result<(), DropReason> {
        let lossless = self.fabric.lossless & (1 << class) != 0;
        match self.fabric.buffer {
            BufferConfig::InputQueued(_) => self.admit_input_queued(at, frame, lossless)?,
            BufferConfig::SharedBuffer(shared) => {
                self.admit_shared(&shared, switch, at, out, frame, class, lossless)?
            }
        }
        let port = &mut self.ingress[at];
        port.peak = port.peak.max(port.buffered + port.in_headroom);
        if lossless && port.pausing == 0 && self.is_full(switch, at) {
            // All of them share the input's headroom, which has room for one round trip.
            self.ingress[at].pausing = self.fabric.lossless;
            if RECORDED {
                self.note_filled(at, out, frame);
            }
            self.note_pause_due(at);
            self.kick(at);
        }
        Ok(())
    }

    /// Each input has a buffer of its own. Lossless classes may use all of it, the last part as
    /// headroom; lossy ones leave the headroom alone.
    fn admit_input_queued(&mut self, at: u32, frame: u64, lossless: bool) -> Result<(), DropReason> {
        let port = &mut self.ingress[at];
        let limit = if lossless { port.limit } else { port.limit.min(port.xoff) };
        if port.buffered + frame > limit {
            return Err(if lossless { DropReason::HeadroomFull } else { DropReason::BufferFull });
        }
        port.buffered += frame;
        Ok(())
    }

    /// One buffer for all ports. A lossy queue may hold `egress_alpha` times what is free; a lossless
    /// input `ingress_alpha` times, then its headroom.
    #[expect(clippy::too_many_arguments, reason = "one packet's whole situation; a struct would be built per packet")]
    fn admit_shared(
        &mut self,
        shared: &SharedBuffer,
        switch: u32,
        at: u32,
        out: u32,
        frame: u64,
        class: u8,
        lossless: bool,
    ) -> Result<(), DropReason> {
        let state = &mut self.switches[switch];
        let free = state.shared_total.saturating_sub(state.shared_used);
        let port = &mut self.ingress[at];
        if !lossless {
            let waiting = self.lines[out * self.classes + u32::from(class)].bytes;
            if frame > free || (waiting + frame) as f64 > shared.egress_alpha * free as f64 {
                return Err(DropReason::BufferFull);
            }
        } else if frame > free || (port.buffered + frame) as f64 > shared.ingress_alpha * free as f64 {
            if port.in_headroom + frame > self.fabric.shared_headroom {
                return Err(DropReason::HeadroomFull);
            }
            port.in_headroom += frame;
            return Ok(());
        }
        port.buffered += frame;
        state.shared_used += frame;
        Ok(())
    }

    /// Whether the peer of port `at` has to be paused.
    fn is_full(&self, switch: u32, at: u32) -> bool {
        let port = &self.ingress[at];
        match self.fabric.buffer {
            BufferConfig::InputQueued(_) => port.buffered > port.xoff,
            BufferConfig::SharedBuffer(shared) => {
                port.in_headroom > 0 || port.buffered > self.threshold(&shared, switch)
            }
        }
    }

    /// Whether the peer of port `at` may go on.
    fn has_room(&self, switch: u32, at: u32) -> bool {
        let port = &self.ingress[at];
        let gap = self.fabric.xon_gap;
        match self.fabric.buffer {
            BufferConfig::InputQueued(_) => port.buffered <= port.xoff.saturating_sub(gap),
            BufferConfig::SharedBuffer(shared) => {
                port.in_headroom == 0 && (port.buffered == 0 || port.buffered + gap <= self.threshold(&shared, switch))
            }
        }
    }

    /// What a lossless input may hold of a shared buffer now.
    fn threshold(&self, shared: &SharedBuffer, switch: u32) -> u64 {
        let state = &self.switches[switch];
        (shared.ingress_alpha * state.shared_total.saturating_sub(state.shared_used) as f64) as u64
    }

    /// Frees what a packet that entered through port `at` has held.
    #[inline]
    pub(crate) fn release(&mut self, switch: u32, at: u32, frame: u64) {
        let port = &mut self.ingress[at];
        if let BufferConfig::SharedBuffer(_) = self.fabric.buffer {
            let from_headroom = port.in_headroom.min(frame);
            port.in_headroom -= from_headroom;
            port.buffered -= frame - from_headroom;
            self.switches[switch].shared_used -= frame - from_headroom;
        } else {
            port.buffered -= frame;
        }
        if self.ingress[at].pausing != 0 && self.has_room(switch, at) {
            self.ingress[at].pausing = 0;
            self.note_pause_due(at);
            self.kick(at);
        }
    }
}
