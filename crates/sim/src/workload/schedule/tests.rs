use selvedge_units::{Bytes, Duration, HostId, Instant};

use super::*;
use crate::workload::{FlowSpec, Measure};

fn us(n: u64) -> Instant {
    Instant::ZERO + Duration::from_us(n)
}

/// Creates an executor of `ranks`, each on the host that `hosts` gives.
fn executor(ranks: Vec<Rank>, hosts: &[u32], repeat: u32) -> Result<Executor, ScheduleError> {
    Executor::new(ExecutionPlan {
        workload: 0,
        measure: Measure::All,
        jobs: vec![0; ranks.len()],
        hosts: hosts.iter().copied().map(HostId).collect(),
        schedule: Schedule::new(ranks),
        start: us(1),
        repeat,
    })
}

fn send(to: u32, tag: u32) -> Step {
    Step::Send { to, size: Bytes::new(100), tag }
}

fn recv(from: u32, tag: u32) -> Step {
    Step::Recv { from, tag }
}

fn compute(us: u64, cpu: u8) -> Step {
    Step::Compute { time: Duration::from_us(us), cpu }
}

fn flows(actions: &[Action]) -> Vec<FlowSpec> {
    actions.iter().filter_map(|action| if let Action::Flow(flow) = action { Some(*flow) } else { None }).collect()
}

#[test]
fn a_step_begins_when_all_that_it_waits_for_has_ended() {
    // Rank 0 sends when rank 1 has sent and rank 0 has computed; rank 1 computes on two processors at once.
    let (mut zero, mut one) = (Rank::default(), Rank::default());
    let ends = [zero.step(recv(1, 5), &[]), zero.step(compute(7, 0), &[])];
    zero.step(send(1, 6), &ends);
    one.step(send(0, 5), &[]);
    for cpu in [0, 0, 1] {
        one.step(compute(10, cpu), &[]);
    }
    one.step(recv(0, 6), &[]);
    let mut executor = executor(vec![zero, one], &[3, 4], 1).unwrap();
    assert_eq!((executor.flows(), executor.hosts().collect::<Vec<_>>()), (2, vec![HostId(3), HostId(4)]));

    let mut actions = Vec::new();
    executor.begin(HostId(3), &mut actions);
    assert_eq!(actions, [Action::Compute { at: us(8), place: 1 }]);
    actions.clear();
    executor.begin(HostId(4), &mut actions);
    let first = flows(&actions)[0];
    assert_eq!((first.src, first.dst, first.start), (HostId(4), HostId(3), us(1)));
    let place = |step: u64| 1 << 32 | step;
    // The second computation waits for its processor.
    assert_eq!(
        actions[1..],
        [Action::Compute { at: us(11), place: place(1) }, Action::Compute { at: us(11), place: place(3) }]
    );
    actions.clear();
    executor.on_computed(place(1), us(11), &mut actions);
    assert_eq!(actions, [Action::Compute { at: us(21), place: place(2) }]);
    actions.clear();
    executor.on_computed(1, us(8), &mut actions);
    assert_eq!(actions, []);
    executor.on_received(first.id, us(9), &mut actions);
    let second = flows(&actions)[0];
    assert_eq!((second.src, second.start), (HostId(3), us(9)));
    actions.clear();
    executor.on_sent(second.id, us(12), &mut actions);
    let done = selvedge_telemetry::RankRow { workload: 0, group: 0, begin: us(1), end: Some(us(12)), measured: true };
    assert_eq!(actions, [Action::Done(done)]);
}

#[test]
fn ranks_repeat_without_waiting_for_each_other() {
    let (mut zero, mut one) = (Rank::default(), Rank::default());
    zero.step(send(1, 0), &[]);
    one.step(recv(0, 0), &[]);
    let mut executor = executor(vec![zero, one], &[0, 1], 3).unwrap();
    let mut actions = Vec::new();
    executor.begin(HostId(0), &mut actions);
    executor.begin(HostId(1), &mut actions);
    // Rank 0 is two repetitions ahead when its first message arrives, after the second.
    executor.on_sent(0, us(2), &mut actions);
    executor.on_sent(1, us(3), &mut actions);
    let sent: Vec<_> = flows(&actions).iter().map(|flow| (flow.id, flow.group)).collect();
    assert_eq!(sent, [(0, 0), (1, 1), (2, 2)]);
    actions.clear();
    executor.on_received(1, us(4), &mut actions);
    assert_eq!(actions, [], "a later message is no answer to this repetition's receive");
    executor.on_received(0, us(5), &mut actions);
    let done: Vec<_> =
        actions.iter().map(|action| if let Action::Done(row) = action { row.group } else { 9 }).collect();
    assert_eq!(done, [0, 1]);
}

#[test]
fn messages_within_a_host_are_there_at_once() {
    let (mut zero, mut one) = (Rank::default(), Rank::default());
    zero.step(send(1, 0), &[]);
    one.step(recv(ANY, ANY), &[]);
    let mut executor = executor(vec![zero, one], &[0, 0], 1).unwrap();
    let mut actions = Vec::new();
    executor.begin(HostId(0), &mut actions);
    assert_eq!(executor.flows(), 0);
    assert!(actions.len() == 2 && actions.iter().all(|action| matches!(action, Action::Done(_))), "{actions:?}");
}

#[test]
fn a_beginning_may_be_waited_for() {
    let (mut zero, mut one) = (Rank::default(), Rank::default());
    let long = [zero.step(compute(5, 0), &[]), zero.step(compute(5, 0), &[])];
    let tail = zero.step(send(1, 0), &[]);
    zero.require_start(tail, long[1]);
    one.step(recv(0, 0), &[]);
    let mut executor = executor(vec![zero, one], &[0, 1], 1).unwrap();
    let mut actions = Vec::new();
    executor.begin(HostId(0), &mut actions);
    assert!(flows(&actions).is_empty(), "the second computation has not begun");
    executor.on_computed(0, us(6), &mut actions);
    assert_eq!(flows(&actions)[0].start, us(6));
}

#[test]
fn schedules_that_cannot_end_are_refused() {
    let why = |ranks: Vec<Rank>| {
        let hosts: Vec<u32> = (0..ranks.len() as u32).collect();
        executor(ranks, &hosts, 1).unwrap_err().message
    };
    let (mut zero, mut one) = (Rank::default(), Rank::default());
    zero.step(send(1, 7), &[]);
    one.step(recv(0, 8), &[]);
    let message = why(vec![zero, one]);
    assert!(message.starts_with("rank 1 waits for a message from rank 0 with tag 8 (its step 1)"), "{message}");

    let mut cycle = Rank::default();
    let steps = [cycle.step(compute(1, 0), &[]), cycle.step(compute(1, 0), &[])];
    cycle.require(steps[0], steps[1]);
    cycle.require(steps[1], steps[0]);
    assert!(why(vec![cycle]).contains("in a cycle"));

    // Each rank waits for the other's message before it sends its own.
    let cross = |peer: u32| {
        let mut rank = Rank::default();
        let got = rank.step(recv(peer, 0), &[]);
        rank.step(send(peer, 0), &[got]);
        rank
    };
    assert!(why(vec![cross(1), cross(0)]).contains("must not wait for what comes after it"));
}

/// Returns why a schedule is refused whose steps stand in lines of their own, each rank's after those of the one
/// before.
fn refusal(steps: &[&[(Step, &[u32])]]) -> ScheduleError {
    let mut line = 0;
    let mut ranks = Vec::new();
    for steps in steps {
        let mut rank = Rank::default();
        for (step, after) in *steps {
            rank.step(*step, after);
        }
        rank.stands_in((line + 1..).zip([4; 9]).take(steps.len()).collect());
        line += steps.len() as u32;
        ranks.push(rank);
    }
    let hosts: Vec<u32> = (0..ranks.len() as u32).collect();
    executor(ranks, &hosts, 1).unwrap_err()
}

#[test]
fn a_receive_without_a_partner_is_blamed_before_its_victims() {
    // Rank 0 waits for rank 2, which sends to it after a message from rank 1 with a tag that no rank sends.
    let why = refusal(&[&[(recv(2, 3), &[])], &[(send(2, 4), &[])], &[(recv(1, 5), &[]), (send(0, 3), &[0])]]);
    assert_eq!(why.place, Some((3, 4)));
    assert_eq!(
        why.message,
        "rank 2 waits for a message from rank 1 with tag 5 (its step 1), and nobody sends one; nobody receives what \
         step 1 of rank 1 (line 2) sends it with tag 4: each \"recv\" needs a \"send\" of its own"
    );

    // Of more receives than messages the last ones are too many, and those with wildcards before those without.
    let why = refusal(&[&[(recv(1, 0), &[]), (recv(1, 0), &[])], &[(recv(0, 9), &[]), (send(0, 0), &[])]]);
    assert_eq!(why.place, Some((3, 4)), "what is never sent comes before what is sent too seldom");
    let why = refusal(&[&[(recv(1, 0), &[]), (recv(1, 0), &[])], &[(send(0, 0), &[])]]);
    assert_eq!(why.place, Some((2, 4)));
    assert!(why.message.contains(", and of 2 such \"recv\" it is one too many: there is 1 \"send\":"), "{why:?}");
    let why = refusal(&[&[(recv(ANY, 0), &[]), (recv(1, 0), &[])], &[(send(0, 0), &[])]]);
    assert_eq!(why.place, Some((1, 4)));
}

#[test]
fn where_all_have_partners_those_that_wait_are_named() {
    let cross = |peer| [(recv(peer, 0), &[][..]), (send(peer, 0), &[0][..])];
    let why = refusal(&[&cross(1), &cross(0)]);
    assert_eq!(why.place, Some((1, 4)));
    let expected = "rank 0 waits for a message from rank 1 with tag 0 (its step 1) that is never sent (its \"send\", \
                    step 2 of rank 1 (line 4), never begins)";
    assert!(why.message.starts_with(expected), "{why:?}");
}

#[test]
fn what_takes_what_comes_first_is_tried_in_the_order_of_time() {
    let wait = |us| (Step::Compute { time: Duration::from_us(us), cpu: 0 }, &[][..]);
    // Rank 2 sends first; the second receive takes rank 1's message, whichever rank comes first in the schedule.
    let first_any = [(recv(ANY, 2), &[][..]), (recv(1, 2), &[0])];
    let of = |us: [u64; 2]| {
        let senders = us.map(|us| [wait(us), (send(0, 2), &[0][..])]);
        steps(&[&first_any, &senders[0], &senders[1]])
    };
    for us in [[20, 10], [100, 0]] {
        executor(of(us), &[0, 1, 2], 1).expect("each receive gets a message");
    }
    // Where rank 1's message comes first, the first receive takes it. This depends on how long messages take.
    executor(of([10, 20]), &[0, 1, 2], 1).expect("another order has an end");
    // A receive whose message depends on the receive itself has none in any order.
    let circle = [(recv(ANY, 2), &[][..]), (recv(1, 7), &[0]), (send(1, 6), &[1])];
    let answers = [(send(0, 2), &[][..]), (recv(0, 6), &[]), (send(0, 7), &[1])];
    let why = executor(steps(&[&circle, &answers]), &[0, 1], 1).unwrap_err();
    assert!(why.message.contains("tag 7 (its step 2) that is never sent"), "{why:?}");
}

/// Which message comes first depends on the network, and a receive that takes any may take another's.
#[test]
fn who_waits_for_what_another_receive_has_taken_is_named() {
    let wait = |us| (Step::Compute { time: Duration::from_us(us), cpu: 0 }, &[][..]);
    let first_any = [(recv(ANY, 2), &[][..]), (recv(1, 2), &[0]), (send(3, 5), &[1])];
    let senders = [10, 20].map(|us| [wait(us), (send(0, 2), &[0][..])]);
    let victim = [(recv(0, 5), &[][..])];
    let steps = steps(&[&first_any, &senders[0], &senders[1], &victim]);
    let mut executor = executor(steps, &[3, 1, 2, 0], 1).expect("another order has an end");
    let (mut actions, mut now) = (Vec::new(), Instant::ZERO);
    (0..4).for_each(|host| executor.begin(HostId(host), &mut actions));
    while !actions.is_empty() {
        actions.sort_by_key(|action| if let Action::Compute { at, .. } = action { *at } else { Instant::ZERO });
        match actions.remove(0) {
            Action::Flow(flow) => {
                executor.on_received(flow.id, now, &mut actions);
                executor.on_sent(flow.id, now, &mut actions);
            }
            Action::Compute { at, place } => {
                now = at;
                executor.on_computed(place, now, &mut actions);
            }
            Action::Done(_) => {}
        }
    }
    // Rank 3 waits for the message of rank 1.
    let stuck = Executor::stuck(&[&executor]).expect("rank 1's message has gone to the first");
    assert_eq!(stuck.waits, "rank 0 waits for a message from rank 1 with tag 2 (its step 2)");
}

/// Returns ranks with these steps.
fn steps(steps: &[&[(Step, &[u32])]]) -> Vec<Rank> {
    let rank = |steps: &&[(Step, &[u32])]| {
        let mut rank = Rank::default();
        for (step, after) in *steps {
            rank.step(*step, after);
        }
        rank
    };
    steps.iter().map(rank).collect()
}
