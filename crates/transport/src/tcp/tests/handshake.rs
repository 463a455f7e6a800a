use super::*;
use crate::tcp::State;

/// Two ends and the segments in flight between them.
struct Both {
    ends: [Connection; 2],
    now: Instant,
}

impl Both {
    fn new(client: TcpConfig, server: TcpConfig) -> Self {
        let client = Connection::connect(&params(client), OURS);
        let server = Connection::listen(&params(server), THEIRS);
        Self { ends: [client, server], now: Instant::ZERO }
    }
    /// Returns the next segment of one end, if any.
    fn poll(&mut self, from: usize) -> Option<Segment> {
        self.ends[from].poll_transmit(&mut Cx::at(self.now)).map(|sent| sent.segment)
    }
    fn tell(&mut self, to: usize, segment: &Segment) {
        let arrival = self.ends[to].handle_segment(&mut Cx::at(self.now), segment, false);
        self.ends[to].read(arrival.in_order);
    }
    /// Carries segments until both ends are idle; returns the segments' flags.
    fn run(&mut self) -> String {
        let mut said = Vec::new();
        loop {
            let before = said.len();
            for from in [0, 1] {
                while let Some(segment) = self.poll(from) {
                    said.push(format!("{}{:?}", ["", "<"][from], segment.flags));
                    self.tell(1 - from, &segment);
                }
            }
            if said.len() == before {
                return said.join(" ");
            }
        }
    }
    fn wake(&mut self) {
        let at = self.ends.iter().filter_map(Connection::poll_timeout).min().expect("an end has a timer");
        self.now = self.now.max(at);
        for end in &mut self.ends {
            end.handle_timeout(&mut Cx::at(self.now));
        }
    }
    fn states(&self) -> (State, State) {
        (self.ends[0].state(), self.ends[1].state())
    }
}

fn full() -> TcpConfig {
    TcpConfig { handshake: true, fin: true, timestamps: true, ..plain() }
}

#[test]
fn three_segments_open_a_connection() {
    let mut both = Both::new(full(), full());
    assert_eq!(both.states(), (State::SynSent, State::Listen));
    let syn = both.poll(0).expect("a SYN");
    assert_eq!((syn.syn.mss, syn.syn.window_scale, syn.syn.sack_permitted), (Some(1_012), Some(0), true));
    both.tell(1, &syn);
    assert_eq!(both.states(), (State::SynSent, State::SynReceived));
    assert_eq!(both.run(), "<SYN+ACK ACK");
    assert_eq!(both.states(), (State::Established, State::Established));
}

#[test]
fn data_flows_both_ways() {
    let mut both = Both::new(full(), full());
    both.ends[0].supply(5_000);
    both.ends[1].supply(2_500);
    both.run();
    assert_eq!((both.ends[0].received(), both.ends[1].received()), (2_500, 5_000));
    assert!(both.ends.iter().all(Connection::is_acknowledged));
}

#[test]
fn what_one_end_does_not_know_neither_uses() {
    let old = TcpConfig { sack: false, timestamps: false, window_scaling: false, ..full() };
    for (client, server) in [(full(), old), (old, full())] {
        let mut both = Both::new(client, server);
        let syn = both.poll(0).expect("a SYN");
        both.tell(1, &syn);
        let answer = both.poll(1).expect("an answer");
        assert_eq!((answer.syn.window_scale, answer.syn.sack_permitted, answer.timestamps), (None, false, None));
        both.tell(0, &answer);
        both.ends[0].supply(3_000);
        assert!(both.poll(0).unwrap().timestamps.is_none());
    }
}

#[test]
fn the_smaller_segment_size_holds() {
    let small = TcpConfig { mss: Setting::Value(Bytes::new(500)), ..full() };
    let mut both = Both::new(full(), small);
    both.ends[0].supply(2_000);
    let syn = both.poll(0).expect("a SYN");
    both.tell(1, &syn);
    let answer = both.poll(1).expect("an answer");
    both.tell(0, &answer);
    let sizes: Vec<u16> = core::iter::from_fn(|| both.poll(0)).map(|segment| segment.payload).collect();
    assert_eq!(sizes, [500; 4]);
}

#[test]
fn a_lost_syn_makes_for_a_small_beginning() {
    // RFC 5681, section 3.1; RFC 6298, rules 2.1 and 5.7.
    let mut both = Both::new(TcpConfig { timestamps: false, ..full() }, TcpConfig { timestamps: false, ..full() });
    both.ends[0].supply(9_000);
    assert!(both.poll(0).is_some(), "a SYN, lost");
    assert_eq!(both.ends[0].poll_timeout(), Some(Instant::ZERO + Duration::from_ms(1_000)));
    both.wake();
    let syn = both.poll(0).expect("a SYN again");
    both.tell(1, &syn);
    let answer = both.poll(1).expect("an answer");
    both.tell(0, &answer);
    assert!(both.poll(0).is_some_and(|segment| segment.payload == 1_000));
    assert!(both.poll(0).is_none(), "one segment");
    assert_eq!(both.ends[0].poll_timeout(), Some(both.now + Duration::from_ms(3_000)));
}

#[test]
fn a_lost_answer_is_repeated_by_either() {
    let mut both = Both::new(full(), full());
    let syn = both.poll(0).expect("a SYN");
    both.tell(1, &syn);
    assert!(both.poll(1).is_some(), "an answer, lost");
    both.wake();
    assert_eq!(both.run(), "SYN <SYN+ACK ACK");
    assert_eq!(both.states(), (State::Established, State::Established));
}

#[test]
fn a_lost_third_segment_is_made_up_for_by_data() {
    let mut both = Both::new(full(), full());
    let syn = both.poll(0).expect("a SYN");
    both.tell(1, &syn);
    let answer = both.poll(1).expect("an answer");
    both.tell(0, &answer);
    assert!(both.poll(0).is_some(), "an acknowledgement, lost");
    both.ends[0].supply(1_000);
    both.run();
    assert_eq!(both.states(), (State::Established, State::Established));
    assert_eq!(both.ends[1].received(), 1_000);
}

#[test]
fn both_may_open_at_once() {
    let end = |ours| Connection::connect(&params(full()), ours);
    let mut both = Both { ends: [end(OURS), end(THEIRS)], now: Instant::ZERO };
    let syns = [both.poll(0).expect("a SYN"), both.poll(1).expect("a SYN")];
    both.tell(0, &syns[1]);
    both.tell(1, &syns[0]);
    assert_eq!(both.states(), (State::SynReceived, State::SynReceived));
    both.run();
    assert_eq!(both.states(), (State::Established, State::Established));
    both.ends[0].supply(3_000);
    both.run();
    assert_eq!(both.ends[1].received(), 3_000);
}

#[test]
fn four_segments_close_a_connection() {
    let mut both = Both::new(full(), full());
    both.ends[0].supply(2_500);
    both.ends[0].close();
    both.run();
    assert_eq!(both.ends[1].received(), 2_500);
    assert_eq!(both.states(), (State::FinWait2, State::CloseWait));
    both.ends[1].supply(700);
    both.ends[1].close();
    assert_eq!(both.run(), "<PSH+ACK+FIN ACK".replace("PSH+ACK+FIN", "FIN+PSH+ACK"));
    assert_eq!(both.states(), (State::TimeWait, State::Closed));
    assert_eq!(both.ends[0].received(), 700);
    both.wake();
    assert_eq!(both.states(), (State::Closed, State::Closed));
    assert_eq!(both.ends[0].poll_timeout(), None);
}

#[test]
fn both_may_close_at_once() {
    let mut both = Both::new(full(), full());
    both.run();
    both.ends[0].close();
    both.ends[1].close();
    let fins = [both.poll(0).expect("a FIN"), both.poll(1).expect("a FIN")];
    both.tell(0, &fins[1]);
    both.tell(1, &fins[0]);
    assert_eq!(both.states(), (State::Closing, State::Closing));
    both.run();
    assert_eq!(both.states(), (State::TimeWait, State::TimeWait));
}

#[test]
fn a_lost_fin_is_sent_again_and_so_is_its_acknowledgement() {
    let mut both = Both::new(full(), full());
    both.run();
    both.ends[0].close();
    assert!(both.poll(0).is_some(), "a FIN, lost");
    assert_eq!(both.states(), (State::FinWait1, State::Established));
    both.wake();
    let fin = both.poll(0).expect("a FIN again");
    both.tell(1, &fin);
    assert!(both.poll(1).is_some(), "an acknowledgement, lost");
    both.ends[1].close();
    assert!(both.poll(1).is_some(), "a FIN, lost");
    assert_eq!(both.states(), (State::FinWait1, State::LastAck));
    both.wake();
    both.run();
    for _ in 0..4 {
        if both.states() == (State::TimeWait, State::Closed) {
            return;
        }
        both.wake();
        both.run();
    }
    panic!("{:?}", both.states());
}

#[test]
fn a_reset_is_believed_only_from_where_the_other_end_is() {
    // RFC 5961, section 3.2.
    let mut both = Both::new(full(), full());
    both.run();
    let reset = |octet: Octet| Segment { seq: octet.to_seq(OURS), flags: Flags::RST, ..Segment::default() };
    both.tell(1, &reset(Octet::FIRST + 5));
    assert_eq!(both.ends[1].state(), State::Established);
    assert!(both.poll(1).is_some(), "a challenge");
    both.tell(1, &reset(Octet::FIRST));
    assert!(both.ends[1].is_reset() && both.ends[1].state() == State::Closed);
    assert_eq!(both.ends[1].poll_timeout(), None);
}

#[test]
fn ecn_is_used_if_both_want_it() {
    // RFC 3168, section 6.1.1.
    for (client, server) in [(Ecn::On, Ecn::On), (Ecn::On, Ecn::Off), (Ecn::Off, Ecn::On)] {
        let mut both = Both::new(TcpConfig { ecn: client, ..full() }, TcpConfig { ecn: server, ..full() });
        both.ends[0].supply(1_000);
        let syn = both.poll(0).expect("a SYN");
        both.tell(1, &syn);
        let answer = both.poll(1).expect("an answer");
        assert_eq!(answer.flags.contains(Flags::ECE), client == Ecn::On && server == Ecn::On);
        both.tell(0, &answer);
        let data = both.ends[0].poll_transmit(&mut Cx::at(both.now)).unwrap();
        assert_eq!(data.ecn_capable, client == Ecn::On && server == Ecn::On);
    }
}
