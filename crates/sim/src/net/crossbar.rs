//! A crossbar between inputs and outputs of switches: an input feeds one output at a time.
//!
//! A packet takes its input for as long as the input's link would take for it, divided by the speed-up. An output that
//! could send, but whose packets all wait at inputs that feed others, looks again when the first of these inputs is
//! free, and when another packet comes. It has claimed that input, unless another output has: an input that several
//! outputs wait for serves the one that has waited longest, and whoever else comes at that moment, a picosecond later.

use super::switch::Site;
use crate::kernel::partition::Partition;
use crate::kernel::table::Table;

/// Nobody's claim.
const NOBODY: u32 = u32::MAX;

/// The inputs of a partition's switches, by port.
pub(crate) struct Crossbar {
    inputs: Table<Input>,
    /// Hundredths of the links' rates.
    speed_up: u64,
}

/// One input.
#[derive(Clone, Copy)]
struct Input {
    /// Until when it feeds an output, in picoseconds.
    free_at: u64,
    /// The output that waits for it, in the partition's numbering.
    claimed_by: u32,
}

impl Crossbar {
    /// One for these ports, whose inputs are so many hundredths as fast as their links.
    pub(crate) fn new(ports: usize, speed_up: u64) -> Self {
        Self { inputs: Table::of(ports, || Input { free_at: 0, claimed_by: NOBODY }), speed_up }
    }

    /// Whether `input` may feed `output` now.
    ///
    /// # Errors
    /// When it may be asked again, in picoseconds.
    fn may_feed(&self, input: u32, output: u32, now: u64) -> Result<(), u64> {
        let Input { free_at, claimed_by } = self.inputs[input];
        if free_at > now {
            return Err(free_at);
        }
        // Whoever has a claim uses it as soon as it can, or never.
        let is_anothers = free_at == now && claimed_by != NOBODY && claimed_by != output;
        if is_anothers { Err(now + 1) } else { Ok(()) }
    }

    /// Lets `input` feed an output from `now` on, with what takes its link `time`.
    fn feed(&mut self, input: u32, now: u64, time: u64) {
        self.inputs[input] = Input { free_at: now + time * 100 / self.speed_up, claimed_by: NOBODY };
    }

    /// Lets `output` wait for `input`.
    fn claim(&mut self, input: u32, output: u32, now: u64) {
        let input = &mut self.inputs[input];
        if input.claimed_by == NOBODY || input.free_at < now {
            input.claimed_by = output;
        }
    }
}

impl<const RECORDED: bool> Partition<RECORDED> {
    /// Whether a packet of `frame` bytes passes from `input` to `output`, for which nothing waits, at once. If so, the
    /// input is busy with it from now on.
    pub(super) fn passes_crossbar(&mut self, input: u32, output: u32, frame: u16) -> bool {
        let now = self.now.as_ps();
        let may = self.crossbar.may_feed(input, output, now).is_ok();
        if may {
            self.feed(input, now, frame);
        }
        may
    }

    fn feed(&mut self, input: u32, now: u64, frame: u16) {
        let bytes = u64::from(frame) + self.gap;
        let time = self.egress[input].serialisation(bytes, || self.extras[input].rate);
        self.crossbar.feed(input, now, time.as_ps());
    }

    /// Sends the next packet of output `at`, which is free, of an input that is free: the highest class that has one,
    /// then round-robin over inputs. Returns when to look again if packets wait, but none at such an input.
    pub(super) fn serve_through_crossbar(&mut self, site: &Site, at: u32) -> Option<u64> {
        let now = self.now.as_ps();
        let mut soonest: Option<(u64, u32)> = None;
        let mut ready = self.egress[at].ready();
        while ready != 0 {
            let class = ready.ilog2() as u8;
            ready &= !(1 << class);
            let line = self.line_of(at, class);
            let begin = self.lines[line].next(&self.queues).place;
            loop {
                let packet = *self.store.at(self.lines[line].next(&self.queues).place);
                let input = site.first_port + u32::from(packet.port);
                match self.crossbar.may_feed(input, at, now) {
                    Ok(()) => {
                        self.feed(input, now, packet.frame);
                        self.serve_class(site, at, class);
                        return None;
                    }
                    Err(until) if soonest.is_none_or(|(time, _)| until < time) => soonest = Some((until, input)),
                    Err(_) => {}
                }
                self.lines[line].turn(&self.queues);
                if self.lines[line].next(&self.queues).place == begin {
                    break;
                }
            }
        }
        let (until, input) = soonest?;
        self.crossbar.claim(input, at, now);
        Some(until)
    }

    /// A packet has begun to wait for output `at`.
    pub(super) fn wait_for_crossbar(&mut self, site: &Site, at: u32) {
        let port = &self.egress[at];
        if !port.free_pending {
            self.look_through_crossbar(site, at);
        } else if port.busy_until <= self.now && !port.pause_due() {
            // It looks again later, in any case.
            self.serve_through_crossbar(site, at);
        }
    }

    /// Output `at` may send something, or looks again whether it may.
    pub(super) fn look_through_crossbar(&mut self, site: &Site, at: u32) {
        let is_free = self.egress[at].busy_until <= self.now;
        let again = if is_free { self.serve_through_crossbar(site, at) } else { None };
        let port = &mut self.egress[at];
        let has_more = port.pause_due() || port.waiting & !port.paused != 0;
        let again = again.or((has_more && port.busy_until > self.now).then(|| port.busy_until.as_ps()));
        port.free_pending = again.is_some();
        if let Some(time) = again {
            self.switches[site.switch].pending.push(at - site.first_port, time);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_serves_the_output_that_has_waited_for_it_first() {
        let mut crossbar = Crossbar::new(1, 100);
        crossbar.feed(0, 0, 100);
        assert_eq!(crossbar.may_feed(0, 1, 50), Err(100));
        crossbar.claim(0, 1, 50);
        crossbar.claim(0, 2, 60);
        assert_eq!(crossbar.may_feed(0, 2, 100), Err(101), "it has not waited as long");
        assert_eq!(crossbar.may_feed(0, 1, 100), Ok(()));
        // Whoever does not come does not keep others waiting.
        assert_eq!(crossbar.may_feed(0, 2, 101), Ok(()));
    }

    #[test]
    fn a_faster_crossbar_lets_inputs_go_sooner() {
        let mut crossbar = Crossbar::new(1, 250);
        crossbar.feed(0, 1_000, 100);
        assert_eq!(crossbar.may_feed(0, 1, 1_039), Err(1_040));
        assert_eq!(crossbar.may_feed(0, 1, 1_040), Ok(()));
    }
}
