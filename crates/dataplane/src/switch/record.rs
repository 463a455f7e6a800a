//! Counters of switches as those of a run.

use selvedge_telemetry::{DropReason, PacketKind, RunRecord};

use super::fabric::FabricEngine;

impl FabricEngine {
    /// Adds what the switches and links have done to the record of a run: drops, marks, pauses, trims, NetRT, and the
    /// totals of all ports. Frames that found the queue before a host's link full count as dropped data.
    pub fn add_to(&self, record: &mut RunRecord) {
        let (fabric, switches) = (&self.fabric, self.fabric.switches());
        switches.totals(switches.now, &mut record.ports);
        for (port, extra) in switches.egress.iter().zip(switches.extras.iter()) {
            record.packet_hops += port.frames;
            record.pause_frames += extra.pause_frames;
            record.paused += extra.paused_time(switches.now);
            record.trims += extra.trims;
        }
        for (kind, drops) in [
            (PacketKind::Data, &mut record.data_drops),
            (PacketKind::Ack, &mut record.ack_drops),
            (PacketKind::Pause, &mut record.pause_drops),
            (PacketKind::Cnp, &mut record.cnp_drops),
            (PacketKind::NetRt, &mut record.netrt.message_drops),
        ] {
            drops.add(&fabric.drops()[kind]);
        }
        record.data_drops.by_reason[DropReason::BufferFull as usize] += self.refused;
        record.ecn_marks += fabric.marks();
        record.events += switches.events;
        switches.tors.iter().flatten().for_each(|tor| tor.add_to(&mut record.netrt));
    }
}
