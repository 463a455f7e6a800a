//! Multicast, by rdma-core's `mckey` and perftest: between namespaces, and between processes of one namespace, which
//! share port 4791.

use std::process::Child;

use crate::support::{FIRST, Namespaces, Pair, Place, have, said, wait_until};

/// Returns the number of sockets of a namespace in a group, which is in this file of `/proc/net` in the file's
/// notation.
fn members(namespace: &str, file: &str, group: &str) -> u32 {
    let mut list = std::process::Command::new("ip");
    let output = list.args(["netns", "exec", namespace, "cat", &format!("/proc/net/{file}")]).output();
    let text = String::from_utf8_lossy(&output.expect("the program is installed").stdout).into_owned();
    let line = text.lines().find(|line| line.contains(group)).unwrap_or_default();
    let users = line.split_whitespace().skip_while(|word| *word != group).nth(1);
    users.and_then(|users| users.parse().ok()).unwrap_or(0)
}

/// Runs two receivers at one place and a sender at the other. Each receiver succeeds when it has ten datagrams.
fn group_of_three(beds: &Namespaces, group: &str, [first, second]: [&str; 2], listed: (&str, &str)) {
    let place = |at: usize| Place { namespace: Some(&beds.names[at]), device: "sv_eth0" };
    let receive = ["mckey", "-m", group, "-b", first];
    let mut receivers: Vec<Child> =
        (0..2).map(|_| place(0).command(&receive, &[]).spawn().expect("timeout runs")).collect();
    let (file, name) = listed;
    let is_up = wait_until(&mut receivers[1], || members(&beds.names[0], file, name) == 2);
    let sender = place(1).run(&["mckey", "-m", group, "-b", second, "-s"]);
    for receiver in receivers {
        let output = receiver.wait_with_output().expect("the child process can be waited for");
        assert!(output.status.success(), "{group}: {}", said(&output));
    }
    assert!(is_up && sender.status.success(), "{group}: {}", said(&sender));
}

#[test]
fn every_process_that_has_joined_a_group_hears_it() {
    if !have(&["mckey"]) {
        return;
    }
    let Some(beds) = Namespaces::new("group") else { return };
    group_of_three(&beds, "239.1.2.3", [FIRST, "10.78.0.2"], ("igmp", "030201EF"));
    let listed = ("igmp6", "ff0e0000000000000000000000040005");
    group_of_three(&beds, "ff0e::4:5", ["fd78::1", "fd78::2"], listed);
}

#[test]
fn perftest_sends_to_groups() {
    if !have(&["ib_send_bw"]) {
        return;
    }
    let Some(beds) = Namespaces::new("bwgroup") else { return };
    let between = beds.pair(&[]);
    // No more datagrams than the receiver has requests for: none is retransmitted.
    let words = ["-F", "-c", "UD", "-n", "300", "-s", "1000", "-g"];
    let v4 = ["-x", "1", "-M", "0:0:0:0:0:0:0:0:0:0:255:255:239:1:2:3"];
    let v6 = ["-x", "2", "-M", "255:14:0:0:0:0:0:0:0:0:0:0:0:4:0:5"];
    between.run("ib_send_bw", &[&words[..], &v4].concat());
    between.run("ib_send_bw", &[&words[..], &v6].concat());
    // The default group is for one host only.
    let within = Pair { client: between.server, ..between };
    within.run("ib_send_bw", &[&words[..], &["-x", "2"]].concat());
    within.run("ib_send_bw", &[&words[..], &v4].concat());
}
