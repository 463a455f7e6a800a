//! Crossbar between inputs and outputs of switches: an input feeds one output at a time.
//!
//! A packet occupies its input for the time that it takes on the input's link, divided by the speed-up. An output that
//! could send, but whose packets all wait at inputs that feed other outputs, tries again when the first of these inputs
//! is free, and when another packet arrives. The output has a claim on that input, unless another output has one: an
//! input that several outputs wait for serves the one that has waited longest; any other output that asks at that
//! moment is served a picosecond later at the earliest.

use selvedge_memory::Table;

use crate::environment::Environment;
use crate::switch::SwitchFacts;
use crate::switches::Switches;

/// Marker of no claim.
const NOBODY: u32 = u32::MAX;

/// Inputs of a partition's switches, indexed by port.
pub struct Crossbar {
    inputs: Table<Input>,
    /// Rate of inputs into the crossbar, in hundredths of their links' rates.
    speed_up: u64,
}

/// State of one input.
#[derive(Clone, Copy)]
struct Input {
    /// Time until which the input feeds an output, in picoseconds.
    free_at: u64,
    /// Output that waits for the input, in the partition's numbering.
    claimed_by: u32,
}

impl Crossbar {
    /// Creates a crossbar of `ports` ports, whose inputs run at `speed_up` hundredths of their links' rates.
    pub fn new(ports: usize, speed_up: u64) -> Self {
        Self { inputs: Table::of(ports, || Input { free_at: 0, claimed_by: NOBODY }), speed_up }
    }

    /// Checks whether `input` may feed `output` now.
    ///
    /// # Errors
    /// The time at which to ask again, in picoseconds.
    fn may_feed(&self, input: u32, output: u32, now: u64) -> Result<(), u64> {
        let Input { free_at, claimed_by } = self.inputs[input];
        if free_at > now {
            return Err(free_at);
        }
        // An output uses its claim as soon as the input is free, or never.
        let is_anothers = free_at == now && claimed_by != NOBODY && claimed_by != output;
        if is_anothers { Err(now + 1) } else { Ok(()) }
    }

    /// Makes `input` feed an output from `now` on with a packet that takes `time` on the input's link.
    fn feed(&mut self, input: u32, now: u64, time: u64) {
        self.inputs[input] = Input { free_at: now + time * 100 / self.speed_up, claimed_by: NOBODY };
    }

    /// Claims `input` for `output`, unless another output has a claim.
    fn claim(&mut self, input: u32, output: u32, now: u64) {
        let input = &mut self.inputs[input];
        if input.claimed_by == NOBODY || input.free_at < now {
            input.claimed_by = output;
        }
    }
}

impl Switches {
    /// Returns whether a packet of `frame` bytes passes from `input` to `output`, for which nothing waits, at once. If
    /// so, the packet occupies the input from now on.
    pub fn passes_crossbar(&mut self, input: u32, output: u32, frame: u16) -> bool {
        let now = self.now.as_ps();
        let may = self.crossbar.may_feed(input, output, now).is_ok();
        if may {
            self.feed(input, now, frame);
        }
        may
    }

    fn feed(&mut self, input: u32, now: u64, frame: u16) {
        let bytes = u64::from(frame) + self.params.gap;
        let time = self.egress[input].serialisation(bytes, || self.extras[input].rate);
        self.crossbar.feed(input, now, time.as_ps());
    }

    /// Sends the next packet of output `at`, which is free, from an input that is free: of the highest class that has
    /// one, round-robin over inputs. Returns when to try again if packets wait, but none at such an input.
    pub fn serve_through_crossbar<E: Environment>(&mut self, env: &mut E, facts: &SwitchFacts, at: u32) -> Option<u64> {
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
                let input = facts.first_port + u32::from(packet.port);
                match self.crossbar.may_feed(input, at, now) {
                    Ok(()) => {
                        self.feed(input, now, packet.frame);
                        self.serve_class(env, facts, at, class);
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

    /// Handles that a packet has begun to wait for output `at`.
    pub fn wait_for_crossbar<E: Environment>(&mut self, env: &mut E, facts: &SwitchFacts, at: u32) {
        let port = &self.egress[at];
        if !port.free_pending {
            self.look_through_crossbar(env, facts, at);
        } else if port.busy_until <= self.now && !port.pause_due() {
            // The output tries again later in any case.
            self.serve_through_crossbar(env, facts, at);
        }
    }

    /// Serves output `at`, if it is free, and schedules the next attempt.
    pub fn look_through_crossbar<E: Environment>(&mut self, env: &mut E, facts: &SwitchFacts, at: u32) {
        let is_free = self.egress[at].busy_until <= self.now;
        let again = if is_free { self.serve_through_crossbar(env, facts, at) } else { None };
        let port = &mut self.egress[at];
        let has_more = port.pause_due() || port.waiting & !port.paused != 0;
        let again = again.or((has_more && port.busy_until > self.now).then(|| port.busy_until.as_ps()));
        port.free_pending = again.is_some();
        if let Some(time) = again {
            self.switches[facts.switch].busy_ports.push(at - facts.first_port, time);
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
        // An output that does not use its claim does not keep others waiting.
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
