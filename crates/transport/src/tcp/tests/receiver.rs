use selvedge_wire::tcp::Timestamps;

use super::*;

/// Returns a receiver's answer: acknowledgement and SACK blocks in segments, or nothing.
fn answer(end: &mut Connection, us: u64) -> String {
    let mut cx = Cx::at(at(us));
    let Some(Transmit { segment, .. }) = end.poll_transmit(&mut cx) else { return String::new() };
    let number = |seq: TcpSeq| (seq.near(Octet::FIRST, THEIRS).expect("behind the SYN") - Octet::FIRST) / MSS;
    let blocks = segment.sacks.iter().map(|(from, to)| format!(" {}-{}", number(from), number(to)));
    let echo = if segment.flags.contains(Flags::ECE) { "e" } else { "" };
    let rest = answer(end, us);
    let then = if rest.is_empty() { String::new() } else { format!(", {rest}") };
    format!("{}{echo}{}{then}", number(segment.ack), blocks.collect::<String>())
}

fn data(number: u64) -> Segment {
    Segment {
        seq: octet(number).to_seq(THEIRS),
        ack: Octet::FIRST.to_seq(OURS),
        flags: Flags::ACK,
        window: 1_000,
        payload: MSS as u16,
        ..Segment::default()
    }
}

/// Runs a dialogue with a receiver; each line is a time, a segment and the expected answer.
fn receiver(config: TcpConfig, lines: &[(u64, u64, &str)]) -> Connection {
    let mut end = Connection::established(&params(config), OURS, THEIRS);
    for (number, &(us, segment, expected)) in lines.iter().enumerate() {
        let arrival = end.handle_segment(&mut Cx::at(at(us)), &data(segment), false);
        end.read(arrival.in_order);
        assert_eq!(answer(&mut end, us), expected, "line {number}, t+{us}us: segment {segment}");
    }
    end
}

fn delayed() -> TcpConfig {
    TcpConfig { delayed_ack: Setting::Value(Duration::from_us(200)), ..plain() }
}

#[test]
fn every_second_segment_is_acknowledged() {
    receiver(delayed(), &[(0, 0, ""), (1, 1, "2"), (2, 2, ""), (3, 3, "4")]);
}

#[test]
fn an_acknowledgement_waits_so_long_and_no_longer() {
    let mut end = receiver(delayed(), &[(0, 0, "")]);
    assert_eq!(end.poll_timeout(), Some(at(200)));
    end.handle_timeout(&mut Cx::at(at(199)));
    assert_eq!(answer(&mut end, 199), "");
    end.handle_timeout(&mut Cx::at(at(200)));
    assert_eq!(answer(&mut end, 200), "1");
    assert_eq!(end.poll_timeout(), None);
}

#[test]
fn what_is_out_of_order_or_fills_a_gap_is_acknowledged_at_once() {
    // RFC 5681, section 4.2.
    receiver(
        delayed(),
        &[
            (0, 0, ""),
            (1, 2, "1 2-3"),
            (2, 4, "1 4-5 2-3"),
            (3, 3, "1 2-5"),
            (4, 8, "1 8-9 2-5"),
            (5, 6, "1 6-7 8-9 2-5"),
            (6, 10, "1 10-11 6-7 8-9 2-5"),
            (7, 1, "5 10-11 6-7 8-9"),
            (8, 1, "5 1-2 10-11 6-7 8-9"), // a duplicate, which RFC 2883 reports first
            (8, 8, "5 8-9 8-9 10-11 6-7"), // and one inside a block
            (9, 5, "7 8-9 10-11"),
            (10, 7, "9 10-11"),
            (11, 9, "11"),
            (12, 11, ""),
        ],
    );
}

#[test]
fn without_sack_gaps_are_told_by_duplicates_alone() {
    let config = TcpConfig { sack: false, ..plain() };
    receiver(config, &[(0, 0, "1"), (1, 2, "1"), (2, 3, "1"), (3, 1, "4")]);
}

#[test]
fn time_stamps_leave_room_for_three_blocks() {
    let config = TcpConfig { timestamps: true, ..plain() };
    let mut end = Connection::established(&params(config), OURS, THEIRS);
    for number in [1, 3, 5, 7] {
        let segment = Segment { timestamps: Some(Timestamps { value: 9, echo: 0 }), ..data(number) };
        end.handle_segment(&mut Cx::at(at(0)), &segment, false);
        assert!(end.poll_transmit(&mut Cx::at(at(0))).is_some_and(|sent| sent.segment.header() <= 60));
    }
    let segment = Segment { timestamps: Some(Timestamps { value: 9, echo: 0 }), ..data(9) };
    end.handle_segment(&mut Cx::at(at(0)), &segment, false);
    assert_eq!(answer(&mut end, 0), "0 9-10 7-8 5-6");
}

#[test]
fn the_echoed_time_stamp_is_that_of_the_oldest_segment_not_acknowledged() {
    // RFC 7323, section 4.3.
    let config = TcpConfig { timestamps: true, ..delayed() };
    let mut end = Connection::established(&params(config), OURS, THEIRS);
    let mut say = |number, value| {
        let segment = Segment { timestamps: Some(Timestamps { value, echo: 0 }), ..data(number) };
        end.handle_segment(&mut Cx::at(at(0)), &segment, false);
        end.poll_transmit(&mut Cx::at(at(0))).and_then(|sent| sent.segment.timestamps).map(|stamps| stamps.echo)
    };
    assert_eq!(say(0, 100), None);
    assert_eq!(say(1, 101), Some(100), "the delayed acknowledgement counts from the first");
    assert_eq!(say(3, 103), Some(100), "a hole: the last in order");
    assert_eq!(say(2, 107), Some(107), "the hole is filled: by whom");
    assert_eq!(say(4, 90), Some(107), "from before: dropped (PAWS)");
    assert_eq!(say(4, 108), None);
    assert_eq!(say(5, 109), Some(108));
}

#[test]
fn a_closed_window_takes_nothing_and_opens_by_two_segments() {
    let config = TcpConfig { receive_buffer: Setting::Value(Bytes::new(4 * MSS)), ..plain() };
    let mut end = Connection::established(&params(config), OURS, THEIRS);
    let window =
        |end: &mut Connection| end.poll_transmit(&mut Cx::at(at(0))).map(|sent| u64::from(sent.segment.window));
    for (number, left) in [(0, 3_000), (1, 2_000), (2, 1_000), (3, 0), (4, 0)] {
        end.handle_segment(&mut Cx::at(at(0)), &data(number), false);
        assert_eq!(window(&mut end), Some(left), "{number}");
    }
    assert_eq!(end.received(), 4 * MSS);
    end.read(MSS);
    assert_eq!(window(&mut end), None, "a silly window");
    end.read(MSS);
    assert_eq!(window(&mut end), Some(2 * MSS));
}

#[test]
fn marks_are_echoed_until_the_sender_has_reduced() {
    // RFC 3168, section 6.1.3.
    let mut end = Connection::established(&params(TcpConfig { ecn: Ecn::On, ..plain() }), OURS, THEIRS);
    let mut say = |number, marked, cwr| {
        let segment = Segment { flags: Flags::ACK | Flags::CWR.when(cwr), ..data(number) };
        end.handle_segment(&mut Cx::at(at(0)), &segment, marked);
        answer(&mut end, 0)
    };
    assert_eq!(say(0, false, false), "1");
    assert_eq!(say(1, true, false), "2e");
    assert_eq!(say(2, false, false), "3e");
    assert_eq!(say(3, false, true), "4");
    assert_eq!(say(4, true, true), "5e");
}

#[test]
fn dctcp_echoes_marks_exactly_though_acknowledgements_are_delayed() {
    // RFC 8257, section 3.2, figure 1.
    let dctcp = crate::tcp::congestion::dctcp::Config::default();
    let config = TcpConfig { congestion: dctcp.into(), ..delayed() };
    let mut end = Connection::established(&params(config), OURS, THEIRS);
    let mut say = |number, marked| {
        end.handle_segment(&mut Cx::at(at(0)), &data(number), marked);
        answer(&mut end, 0)
    };
    assert_eq!(say(0, false), "");
    assert_eq!(say(1, true), "1, 2e", "the unmarked one for itself, then both are due");
    assert_eq!(say(2, true), "");
    assert_eq!(say(3, true), "4e");
    assert_eq!(say(4, false), "");
    assert_eq!(say(5, false), "6");
}

#[test]
fn overlapping_segments_are_trimmed() {
    let mut end = receiver(plain(), &[(0, 0, "1"), (0, 2, "1 2-3")]);
    // From the middle of 0 to the middle of 2.
    let segment = Segment { seq: (octet(0) + 500).to_seq(THEIRS), payload: 2_000, ..data(0) };
    let arrival = end.handle_segment(&mut Cx::at(at(1)), &segment, false);
    assert_eq!((arrival.fresh, arrival.in_order, arrival.is_duplicate), (1_000, 2_000, false));
    let arrival = end.handle_segment(&mut Cx::at(at(1)), &segment, false);
    assert_eq!((arrival.fresh, arrival.in_order, arrival.is_duplicate), (0, 0, true));
}

#[test]
fn pieces_out_of_order_are_bounded() {
    let config = TcpConfig { receive_buffer: Setting::Value(Bytes::new(8 * MSS)), ..plain() };
    let mut end = Connection::established(&params(config), OURS, THEIRS);
    for place in (1..7_000).step_by(2) {
        let segment = Segment { seq: (octet(0) + place).to_seq(THEIRS), payload: 1, ..data(0) };
        end.handle_segment(&mut Cx::at(at(0)), &segment, false);
    }
    let arrival = end.handle_segment(&mut Cx::at(at(1)), &data(0), false);
    assert_eq!(arrival.in_order, 1_000);
    assert_eq!(arrival.fresh, 1_000 - 8, "eight pieces were kept");
}

/// Cuts the path between two ends for `minutes` after a segment each way; with `late`, segments held back on the path
/// arrive first. Returns the number of segments sent afterwards, at most 100, and the octets received by both ends.
fn after_silence(minutes: u64, late: bool) -> (u32, u64) {
    let config = TcpConfig { timestamps: true, ..plain() };
    let mut ends =
        [(OURS, THEIRS), (THEIRS, OURS)].map(|(ours, theirs)| Connection::established(&params(config), ours, theirs));
    let begin = at(2_000);
    let carry = |ends: &mut [Connection; 2], now: Instant, most: u32| {
        for sent in 0..most {
            let Some((from, segment)) =
                [0, 1].into_iter().find_map(|from| Some((from, ends[from].poll_transmit(&mut Cx::at(now))?.segment)))
            else {
                return sent;
            };
            let arrival = ends[1 - from].handle_segment(&mut Cx::at(now), &segment, false);
            ends[1 - from].read(arrival.in_order);
        }
        most
    };
    ends.iter_mut().for_each(|end| end.supply(MSS));
    assert!(carry(&mut ends, begin, 100) < 100);
    // Segments held back on the path arrive first, if there were any.
    ends.iter_mut().for_each(|end| end.supply(MSS));
    let waiting = [0, 1].map(|from| ends[from].poll_transmit(&mut Cx::at(begin)).expect("a segment").segment);
    let now = begin + Duration::from_ms(minutes * 60_000);
    for from in [0, 1] {
        if late {
            ends[1 - from].handle_segment(&mut Cx::at(now), &waiting[from], false);
        }
        ends[from].handle_timeout(&mut Cx::at(now));
        ends[from].supply(MSS);
    }
    (carry(&mut ends, now, 100), ends[0].received() + ends[1].received())
}

/// The clock of time stamps changes its sign bit after 35.8 minutes and repeats after 71.6 (RFC 7323, section 5.5).
#[test]
fn no_silence_is_so_long_that_ends_take_each_other_for_old() {
    for minutes in (1..=75).chain([107, 108, 143, 144, 180, 600, 1_000, 10_000]) {
        for late in [false, true] {
            let (segments, received) = after_silence(minutes, late);
            assert_eq!(received, 6 * MSS, "after {minutes} min");
            assert!(segments < 20, "{segments} segments after {minutes} min: they answer each other's answers");
        }
    }
}

#[test]
fn what_is_old_stays_old_for_half_an_hour() {
    let config = TcpConfig { timestamps: true, ..plain() };
    for (minutes, is_taken) in [(0, false), (1, false), (34, false), (35, true)] {
        let mut end = Connection::established(&params(config), OURS, THEIRS);
        let mut say = |now: Instant, number, value| {
            let segment = Segment { timestamps: Some(Timestamps { value, echo: 0 }), ..data(number) };
            end.handle_segment(&mut Cx::at(now), &segment, false).in_order > 0
        };
        let begin = at(60_000_000);
        assert!(say(begin, 0, 60_000_000));
        let later = begin + Duration::from_ms(minutes * 60_000);
        assert_eq!(say(later, 1, 59_000_000), is_taken, "after {minutes} min");
    }
}
