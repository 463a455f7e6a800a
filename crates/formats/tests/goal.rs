//! Tests of GOAL schedules, as text and as bytes.

use selvedge_formats::goal::{self, OperationKind};
use selvedge_formats::{Dialect, detect};
use selvedge_units::{Bytes, Duration, Instant};

const TEXT: &[u8] = include_bytes!("../../../fuzz/corpus/formats_goal/two.goal");
const BINARY: &[u8] = include_bytes!("../../../fuzz/corpus/formats_goal/two.bin");

#[test]
fn text_and_bytes_say_the_same() {
    let text = goal::read(TEXT, "two.goal").unwrap();
    let binary = goal::read(BINARY, "two.bin").unwrap();
    assert_eq!((text.dialect, binary.dialect), (Dialect::GoalText, Dialect::GoalBinary));
    assert_eq!((detect(TEXT, "f"), detect(BINARY, "f")), (Ok(Dialect::GoalText), Ok(Dialect::GoalBinary)));
    let mut zero_and_one = text.value.clone();
    zero_and_one.ranks.values_mut().for_each(|rank| rank.places.clear());
    assert_eq!(zero_and_one, binary.value);
    let zero = &text.value.ranks[&0];
    assert_eq!(zero.places.len(), zero.operations.len());
    assert_eq!(zero.operations[0].kind, OperationKind::Compute(Duration::from_ns(100)));
    assert_eq!(zero.operations[1].kind, OperationKind::Send { to: 1, size: Bytes::new(4096), tag: 7 });
    assert_eq!(zero.requires, [(1, 0)]);
}

#[test]
fn comments_labels_and_wildcards_are_understood() {
    let file = "/* two\nlines */ num_ranks 3 // three\nrank 0{\nsend 1b to 1 tag 2 cpu 3 nic 1 # last\n}\nrank 1 {\n\
                b irequires a\nb: calc 5\na: recv 1b from -1 tag -1\n}\n";
    assert_eq!(detect(file.as_bytes(), "f"), Ok(Dialect::GoalText));
    let parsed = goal::read(file.as_bytes(), "f").unwrap();
    let sender = parsed.value.ranks[&0].operations[0];
    assert_eq!((sender.cpu, sender.nic), (3, 1));
    let one = &parsed.value.ranks[&1];
    let any = OperationKind::Recv { from: None, tag: None, size: Bytes::new(1) };
    assert_eq!((one.operations[1].kind, one.start_requires.as_slice()), (any, &[(0, 1)][..]));
    assert_eq!(parsed.warnings[0].message, "1 of the 3 ranks do nothing");
}

#[test]
fn no_blank_is_needed_between_a_number_and_a_word() {
    let apart = "num_ranks 2\nrank 0 {\nl1: send 1b to 1 tag 5 cpu 0 nic 1\nl2: calc 5 cpu 2\n}\n\
                 rank 1 {\na: recv 1b from 0 tag 5 cpu 3 nic 2\nb: recv 1b from -1 tag 7\n}\n";
    let close = "num_ranks 2\nrank 0 {\nl1:send 1b to 1tag 5cpu 0nic 1\nl2 : calc 5cpu 2\n}\n\
                 rank 1 {\na :recv 1b from 0tag 5cpu 3nic 2\nb: recv 1b from -1 tag 7\n}\n";
    let [apart, mut close] = [apart, close].map(|file| goal::read(file.as_bytes(), "f").unwrap().value);
    close.ranks.iter_mut().for_each(|(number, rank)| rank.places.clone_from(&apart.ranks[number].places));
    assert_eq!(apart, close);
    let error = goal::read(b"num_ranks 2\nrank 0 {\nl1: send 1b to 1 cpu 0nice 1\n}\n", "f").unwrap_err().to_string();
    assert!(error.starts_with("f:3:23: found \"nice\", expected \"tag\", \"cpu\", \"nic\""), "{error}");
}

#[test]
fn messages_through_a_second_nic_are_warned_about_by_their_line() {
    let warnings = |file: &[u8]| -> Vec<String> {
        let warnings = goal::read(file, "f").unwrap().warnings;
        warnings.into_iter().map(|warning| format!("{}: {}", warning.line, warning.message)).collect()
    };
    let text = |zero: &str, one: &str| format!("num_ranks 2\nrank 0 {{\n{zero}\n}}\nrank 1 {{\n{one}\n}}\n");
    let one_nic = "a host has one NIC here, and all messages of its rank go through that";
    let file = text(
        "a: send 1b to 1 tag 1\nb: send 1b to 1 tag 2 nic 3",
        "recv 1b from 0 tag 1 nic 1\nrecv 1b from 0 tag 2 nic 2",
    );
    assert_eq!(
        warnings(file.as_bytes()),
        [format!("4: \"nic 3\" names another NIC than a rank's first, as 2 more messages do: {one_nic}")]
    );
    // The first NIC is the host's NIC, and computations have none.
    let file = text("a: send 1b to 1 nic 0\ncalc 5 nic 1", "recv 1b from 0");
    assert_eq!(warnings(file.as_bytes()), [""; 0]);
    let mut bytes = BINARY.to_vec();
    let size = 4096u64.to_le_bytes();
    let at = bytes.windows(8).position(|window| window == size).expect("the queue has a message");
    bytes[at + 8 + 4 + 1] = 2;
    let expected = "1: \"nic 2\" (operation 1 of rank 0) names another NIC than a rank's first";
    assert!(warnings(&bytes)[0].starts_with(expected), "{:?}", warnings(&bytes));
}

#[test]
fn binary_schedules_that_are_marked_invalid_are_called_that() {
    let mut bytes = BINARY.to_vec();
    bytes[..8].copy_from_slice(&2342u64.to_le_bytes());
    for file in [&bytes, &bytes[..8]] {
        for error in [goal::read(file, "f").unwrap_err(), detect(file, "f").unwrap_err()] {
            let expected = "f:1:1: found a binary GOAL schedule that is marked invalid (its first number is 2342,";
            assert!(error.to_string().starts_with(expected), "{error}");
        }
    }
}

#[test]
fn messages_that_nobody_receives_are_told_by_their_line() {
    let warnings = |zero: &str, one: &str| -> Vec<String> {
        let file = format!("num_ranks 2\nrank 0 {{\n{zero}\n}}\nrank 1 {{\n{one}\n}}\n");
        let warnings = goal::read(file.as_bytes(), "f").unwrap().warnings;
        warnings.into_iter().map(|warning| format!("{}: {}", warning.line, warning.message)).collect()
    };
    let three = "a: send 1b to 1 tag 1\nb: send 1b to 1 tag 2\nc: send 1b to 1 tag 1";
    let all = "recv 1b from 0 tag 1\nrecv 1b from 0 tag 2\nrecv 1b from 0 tag 1";
    assert_eq!(warnings(three, all), [""; 0]);
    assert_eq!(warnings(three, "recv 1b from -1 tag -1\nrecv 1b from 0 tag 1\nrecv 1b from -1 tag 1"), [""; 0]);
    let expected = "1 message is sent that nobody receives; each \"send\" wants a \"recv\"";
    assert_eq!(warnings(three, "recv 1b from 0 tag 1\nrecv 1b from 0 tag 1"), [format!("4: {expected}")]);
    let expected = "3 messages are sent that nobody receives, this one first; each \"send\" wants a \"recv\"";
    assert_eq!(warnings(three, "calc 1"), [format!("3: {expected}")]);
    // A receive without a message is refused when the schedule runs.
    assert_eq!(warnings("calc 1", all), [""; 0]);
}

#[test]
fn receives_of_another_size_than_their_messages_are_told_with_both_lines() {
    let warnings = |zero: &str, one: &str| -> Vec<String> {
        let file = format!("num_ranks 2\nrank 0 {{\n{zero}\n}}\nrank 1 {{\n{one}\n}}\n");
        let warnings = goal::read(file.as_bytes(), "f").unwrap().warnings;
        warnings.into_iter().map(|warning| format!("{}: {}", warning.line, warning.message)).collect()
    };
    let counts = "the size of the \"send\" counts";
    assert_eq!(
        warnings("a: send 100000b to 1", "calc 1\nrecv 5b from 0"),
        [format!("7: this \"recv\" expects 5 bytes, but the \"send\" for it (line 3) has 100000; {counts}")]
    );
    // The order in which sends and receives match is open, so that sizes may come in another order.
    let two = "send 1b to 1\nsend 2b to 1";
    assert_eq!(warnings(two, "recv 2b from 0\nrecv 1b from 0"), [""; 0]);
    assert_eq!(
        warnings(two, "recv 2b from 0\nrecv 2b from 0"),
        [format!("8: this \"recv\" expects 2 bytes, but the \"send\" for it (line 3) has 1; {counts}")]
    );
    assert_eq!(
        warnings(two, "recv 3b from 0\nrecv 4b from 0"),
        [format!(
            "7: this \"recv\" expects 3 bytes, but the \"send\" for it (line 3) has 1 (1 more like this); {counts}"
        )]
    );
    // The message that a receive from any rank takes is undetermined, and so are the remaining ones.
    assert_eq!(warnings(two, "recv 1b from -1\nrecv 7b from 0"), [""; 0]);
}

#[test]
fn computations_last_as_long_in_both_forms() {
    let text = |ns: u64| format!("num_ranks 1\nrank 0 {{\ncalc {ns}\n}}\n").into_bytes();
    let binary = |ns: u64| {
        let (mut bytes, calc) = (BINARY.to_vec(), 100u64.to_le_bytes());
        let at = bytes.windows(8).position(|window| window == calc).expect("the file has an operation");
        bytes[at..at + 8].copy_from_slice(&ns.to_le_bytes());
        bytes
    };
    let most = (Instant::HORIZON.as_ps() - 1) / 1_000;
    for file in [text, binary] {
        let goal = goal::read(&file(most), "f").expect("the last time is within the horizon").value;
        assert_eq!(goal.ranks[&0].operations[0].kind, OperationKind::Compute(Duration::from_ns(most)));
        let error = goal::read(&file(most + 1), "f").unwrap_err();
        assert!(error.message.contains(&(most + 1).to_string()), "{error}");
    }
}

#[test]
fn every_cut_and_every_wrong_byte_of_a_binary_file_is_an_error_or_means_something() {
    for end in 8..BINARY.len() {
        let error = goal::read(&BINARY[..end], "f").unwrap_err();
        assert!(error.message.contains("expected") && error.column as usize <= end + 1, "{error}");
    }
    for at in 8..BINARY.len() {
        let mut bytes = BINARY.to_vec();
        bytes[at] ^= 0xff;
        if let Err(error) = goal::read(&bytes, "f") {
            assert!(error.message.contains("expected"), "{error}");
        }
    }
}

#[test]
fn operations_of_a_binary_file_that_wait_for_each_other_are_named() {
    // The magic number, one rank, and its range behind the first eight bytes.
    let mut file = b"\x7f\x10\0\0\0\0\0\0\x01\0\0\0\0\0".to_vec();
    let rank = 8 + 39 * 2 + 8;
    file.extend([22_u64, 22 + rank].iter().flat_map(|offset| offset.to_le_bytes()));
    // Two computations, each of which precedes the other.
    file.extend(2_u32.to_le_bytes());
    file.extend(0_u32.to_le_bytes());
    for first in [0_u32, 1] {
        file.extend(1_u32.to_le_bytes());
        file.push(3);
        file.extend([0; 4]);
        file.extend(5_u64.to_le_bytes());
        file.extend([0; 6]);
        for number in [1, first, 0, 0] {
            file.extend(number.to_le_bytes());
        }
    }
    file.extend(1_u32.to_le_bytes());
    file.extend(0_u32.to_le_bytes());
    let error = goal::read(&file, "f").unwrap_err();
    let expected = "found operation 0 waiting for operation 1, which waits for operation 0: a cycle";
    assert!(error.message.starts_with(expected), "{error}");
    assert_eq!(error.column, 22 + 8 + 8 + 1);
}
