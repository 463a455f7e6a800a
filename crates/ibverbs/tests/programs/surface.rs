//! Behaviour that programs see before any packet is sent: devices and their names, files, descriptors, ports, limits,
//! messages.

use std::process::Stdio;

use crate::support::{
    FIRST, LOOPBACK, Listens, Namespaces, Pair, Place, build, fresh_port, have, said, shell, turn, wait_until,
};

fn names_of_devices(place: Place<'_>, environment: &[(&str, &str)]) -> Vec<String> {
    let output = place.command(&["ibv_devices"], environment).output().expect("timeout runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().skip(2).filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

#[test]
fn loopback_is_a_device_where_it_is_alone_or_asked_for() {
    if !have(&["ibv_devices", "ibv_devinfo"]) {
        return;
    }
    let Some(namespaces) = Namespaces::new("lo") else { return };
    let place = namespaces.pair(&[]).server;
    assert_eq!(names_of_devices(place, &[]), ["sv_eth0"]);
    assert_eq!(names_of_devices(place, &[("SELVEDGE_LOOPBACK", "yes")]), ["sv_eth0", "sv_lo"]);
    assert_eq!(names_of_devices(place, &[("UCX_NET_DEVICES", "sv_lo:1")]), ["sv_eth0", "sv_lo"]);
    assert_eq!(names_of_devices(place, &[("SELVEDGE_DEVICE_NAMES", "lo=rxe_lo,eth0=mlx5_0")]), ["mlx5_0", "rxe_lo"]);
    let named = place.run(&["ibv_devinfo", "-d", "sv_lo"]);
    assert!(named.status.success(), "{}", said(&named));
    let wrong = place.command(&["ibv_devices"], &[("SELVEDGE_LOOPBACK", "1")]).output().expect("timeout runs");
    assert!(said(&wrong).contains("SELVEDGE_LOOPBACK=1: yes and no are known"), "{}", said(&wrong));

    let name = &namespaces.names[0];
    shell(&format!("ip -n {name} link set eth0 down")).expect("ip sets the link down");
    assert_eq!(names_of_devices(place, &[]), ["sv_eth0", "sv_lo"]);
    assert_eq!(names_of_devices(place, &[("SELVEDGE_LOOPBACK", "no")]), ["sv_eth0"]);
    shell(&format!("ip -n {name} link del eth0")).expect("ip deletes the link");
    assert_eq!(names_of_devices(place, &[]), ["sv_lo"]);
}

#[test]
fn loopback_addresses_lead_to_a_device_where_loopback_is_none() {
    if !have(&["rping", "ib_write_bw"]) {
        return;
    }
    let Some(namespaces) = Namespaces::new("self") else { return };
    let place = namespaces.pair(&[]).server;
    for address in ["127.0.0.1", "10.78.0.1", "::1"] {
        let pair = Pair { server: place, client: place, address, environment: &[] };
        let rping = |who: &'static str| ["rping", who, "-a", address, "-p", "7340", "-C", "10", "-V", "-S", "4000"];
        pair.connect(&rping("-s"), &rping("-c"), 7_340);
    }
    Pair { server: place, client: place, address: "127.0.0.1", environment: &[] }.run("ib_write_bw", &["-F"]);
}

#[test]
fn names_have_no_hyphens_and_who_uses_one_is_told() {
    if !have(&["ibv_devinfo"]) {
        return;
    }
    let Some(namespaces) = Namespaces::new("name") else { return };
    let name = &namespaces.names[0];
    shell(&format!("ip -n {name} link add br-a.7 type bridge && ip -n {name} addr add 10.79.0.1/24 dev br-a.7"))
        .expect("bridges can be made");
    let place = namespaces.pair(&[]).server;
    assert_eq!(names_of_devices(place, &[]), ["sv_eth0", "sv_br_a.7"]);
    let told = |words: &[&str], environment: &[(&str, &str)]| {
        let output = place.command(words, environment).output().expect("timeout runs");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let expected = "selvedge: no device is called sv-eth0: that of eth0 is sv_eth0";
    assert!(told(&["ibv_devinfo", "-d", "sv-eth0"], &[]).contains(expected));
    assert!(told(&["ibv_devices"], &[("UCX_NET_DEVICES", "sv-eth0:1")]).contains(expected));
    assert_eq!(told(&["ibv_devinfo", "-d", "sv-eth0"], &[("SELVEDGE_DEVICE_NAMES", "eth0=sv-eth0")]), "");
}

/// Returns a file that replaces the kernel's identifier of the boot: programs take hosts with equal identifiers for the
/// same.
fn boot_id(end: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("boot-{}-{end}", std::process::id()));
    let id = std::fs::read_to_string("/proc/sys/kernel/random/uuid").expect("the kernel has random numbers");
    std::fs::write(&path, id).expect("the folder exists");
    path.display().to_string()
}

#[test]
fn ucx_by_itself_chooses_devices_that_reach_the_other_host() {
    if !have(&["ucx_perftest", "unshare"]) {
        return;
    }
    let Some(namespaces) = Namespaces::new("rails") else { return };
    let boots = ["a", "b"].map(boot_id);
    let on_host = |at: usize, words: &str| {
        let mount = format!("mount --bind {} /proc/sys/kernel/random/boot_id && exec {words}", boots[at]);
        ["unshare".to_owned(), "-m".to_owned(), "sh".to_owned(), "-c".to_owned(), mount]
    };
    for transports in ["rc_verbs,ud_verbs:aux", "ud_verbs"] {
        let environment = [("UCX_TLS", transports)];
        let pair = namespaces.pair(&environment);
        let port = fresh_port();
        let server = on_host(0, &format!("ucx_perftest -p {port}"));
        let client = on_host(1, &format!("ucx_perftest {FIRST} -p {port} -t tag_bw -s 1000000 -n 100"));
        let [server, client] = [&server, &client].map(|words| words.each_ref().map(String::as_str));
        pair.meet(&server, &client, Listens::Tcp(port));
    }
    boots.iter().for_each(|boot| std::fs::remove_file(boot).expect("the file exists"));
}

#[test]
fn libfabric_plays_ping_pong_between_hosts() {
    if !have(&["fi_pingpong"]) {
        return;
    }
    let Some(namespaces) = Namespaces::new("fabric") else { return };
    for (provider, endpoint) in [("verbs", "msg"), ("verbs;ofi_rxm", "rdm"), ("verbs", "dgram")] {
        let port = fresh_port();
        let port_text = port.to_string();
        let server = ["fi_pingpong", "-p", provider, "-e", endpoint, "-v", "-I", "50", "-B", &port_text];
        let client = ["fi_pingpong", "-p", provider, "-e", endpoint, "-v", "-I", "50", "-P", &port_text, FIRST];
        namespaces.pair(&[]).meet(&server, &client, Listens::Tcp(port));
    }
}

#[test]
fn files_of_devices_can_be_read_in_every_way() {
    let Some(program) = build("sysfs.c", &[]) else { return };
    let mut places = vec![LOOPBACK];
    let namespaces = Namespaces::new("files");
    places.extend(namespaces.as_ref().map(|namespaces| namespaces.pair(&[]).server));
    for place in places {
        let output = place.run(&[&program, place.device]);
        let text = String::from_utf8_lossy(&output.stdout);
        let wrong: Vec<_> = text.lines().filter(|line| !line.ends_with(": well")).collect();
        assert!(output.status.success() && wrong.is_empty() && text.lines().count() == 29, "{}", said(&output));
    }
}

#[test]
fn files_of_devices_can_be_listed_by_ordinary_programs() {
    let listed = |words: &[&str]| {
        let output = LOOPBACK.run(words);
        assert!(output.status.success(), "{words:?}: {}", said(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let class = "/sys/class/infiniband";
    assert!(listed(&["ls", class]).lines().any(|name| name == "sv_lo"));
    assert!(listed(&["ls", "-l", class]).contains("sv_lo -> ../../devices/virtual/selvedge/lo/infiniband/sv_lo"));
    assert_eq!(
        listed(&["find", "-L", &format!("{class}/sv_lo/ports"), "-name", "rate"]),
        format!("{class}/sv_lo/ports/1/rate\n")
    );
    assert_eq!(listed(&["realpath", &format!("{class}/sv_lo/device")]), "/sys/devices/virtual/selvedge/lo\n");
    // The shell enters the folder, and starts programs there.
    let script = format!(
        "cd {class}/sv_lo && cat ports/1/link_layer device/numa_node && cd .. && pwd && ls -d sv_lo && cat */ports/1/gids/1 > /dev/null"
    );
    assert_eq!(listed(&["bash", "-c", &script]), format!("Ethernet\n-1\n{class}\nsv_lo\n"));
    if !have(&["python3"]) {
        return;
    }
    let script = "import os, glob, pathlib\n\
        root = '/sys/class/infiniband'\n\
        assert 'sv_lo' in os.listdir(root) and os.path.isdir(root)\n\
        assert any(e.name == 'sv_lo' and e.is_symlink() and e.is_dir() for e in os.scandir(root))\n\
        assert root + '/sv_lo/ports/1/rate' in glob.glob(root + '/*/ports/*/rate')\n\
        assert os.path.realpath(root + '/sv_lo/../..') == '/sys/devices/virtual/selvedge/lo'\n\
        assert (pathlib.Path(root) / 'sv_lo' / 'device').resolve().name == 'lo'\n\
        assert len(list((pathlib.Path(root) / 'sv_lo' / 'ports' / '1' / 'gids').iterdir())) == 256\n\
        folder = os.open(root, os.O_RDONLY)\n\
        assert os.readlink(f'/proc/self/fd/{folder}') == root\n\
        assert os.listdir(folder) == os.listdir(root)\n\
        print('well')\n";
    assert_eq!(listed(&["python3", "-c", script]), "well\n");
}

#[test]
fn descriptors_are_readable_when_there_is_an_event_and_never_writable() {
    let Some(program) = build("waits.c", &["-lrdmacm", "-libverbs"]) else { return };
    let output = LOOPBACK.run(&[&program, LOOPBACK.device]);
    let (nothing, event) = ("poll  select  epoll ", "poll r select r epoll r");
    let expected = format!(
        "\
nothing: {nothing}
nothing: {nothing}
nothing: {nothing}
one completion: {event}
an edge: 1, then 0
another edge: 1, then 0
one of two taken: {event}
both taken: {nothing}
none, not waiting: EAGAIN
an event: {event}
taken: {nothing}
gone with its identifier: {nothing}
gone with its queue: {nothing}
"
    );
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{}", said(&output));
}

#[test]
fn a_port_is_given_once() {
    let Some(program) = build("ports.c", &["-lrdmacm", "-libverbs"]) else { return };
    let _turn = turn();
    let output = LOOPBACK.run(&[&program]);
    let expected = "\
a source port: well
again: EADDRINUSE
to listen on it: EADDRINUSE
to listen on all addresses: EADDRINUSE
for datagrams: well
in another process: EADDRINUSE
given back, for datagrams it is held: well
shared 0: well
shared 1: well
shared 2: EADDRINUSE
listens, but shares: EADDRINUSE
listens alone: well
any port: 0 given twice
";
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{}", said(&output));
}

#[test]
fn a_server_whose_client_is_killed_ends() {
    if !have(&["ib_write_bw", "ib_read_bw"]) {
        return;
    }
    let Some(namespaces) = Namespaces::new("killed") else { return };
    let pair = namespaces.pair(&[]);
    for program in ["ib_write_bw", "ib_read_bw"] {
        let words = [program, "-R", "-F", "-D", "300", "-p", "7350"];
        let mut server = pair.server.command(&words, &[]).spawn().expect("timeout runs");
        assert!(wait_until(&mut server, || pair.server.has("udp", ":1CB6 ", "")));
        // Without `timeout`, which would be killed in its place.
        let client = format!("exec {} {FIRST}", words.join(" "));
        let mut command = pair.client.command(&["sh", "-c", &format!("echo $$; {client}")], &[]);
        let mut client = command.stdout(Stdio::piped()).spawn().expect("timeout runs");
        let mut first = String::new();
        let mut output = std::io::BufReader::new(client.stdout.take().expect("standard output is piped"));
        std::io::BufRead::read_line(&mut output, &mut first).expect("the first line is the process number");
        // By then the client writes or reads.
        shell("sleep 3").expect("sleep runs");
        shell(&format!("kill -9 {}", first.trim())).expect("the process to kill runs");
        client.wait().expect("the child process can be waited for");
        let pid = server.id();
        let ends = shell(&format!(
            "timeout 60 sh -c 'while kill -0 {pid} && ! grep -q zombie /proc/{pid}/status; do sleep 0.1; done'"
        ));
        if ends.is_err() {
            let _ = shell(&format!("kill {pid}"));
        }
        let output = server.wait_with_output().expect("the child process can be waited for");
        assert!(ends.is_ok(), "{program}: {}", said(&output));
        assert!(!output.status.success(), "{program}: {}", said(&output));
    }
}

#[test]
fn gids_of_different_kinds_are_explained() {
    if !have(&["ibv_rc_pingpong"]) {
        return;
    }
    let Some(namespaces) = Namespaces::new("kinds") else { return };
    let pair = namespaces.pair(&[]);
    for [ours, theirs] in [["1", "2"], ["2", "1"]] {
        let port = fresh_port().to_string();
        let words =
            |index| ["ibv_rc_pingpong", "-d", "sv_eth0", "-n", "1", "-p", &*port, "-g", index].map(str::to_owned);
        let [server, client] = [words(ours).to_vec(), [words(theirs).to_vec(), vec![FIRST.to_owned()]].concat()];
        let [server, client] = [&server, &client].map(|words| words.iter().map(String::as_str).collect::<Vec<_>>());
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            pair.meet(&server, &client, Listens::Tcp(port.parse().expect("a port")))
        }));
        let message = *outcome.expect_err("should panic").downcast::<String>().expect("a panic with a message");
        assert!(message.contains("both ends need GIDs of one kind (here GID "), "{message}");
    }
    // Link-local and global addresses can connect with each other.
    for [ours, theirs] in [["0", "2"], ["2", "0"]] {
        let port = fresh_port();
        let text = port.to_string();
        let words = |index| ["ibv_rc_pingpong", "-d", "sv_eth0", "-n", "50", "-c", "-p", &*text, "-g", index];
        let (server, client) = (words(ours), words(theirs));
        pair.meet(&server, &[&client[..], &[FIRST]].concat(), Listens::Tcp(port));
    }
}

#[test]
fn profiles_have_the_limits_of_other_nics() {
    let Some(program) = build("limits.c", &["-libverbs"]) else { return };
    let run = |profile: &str| {
        let output = LOOPBACK.command(&[&program, LOOPBACK.device], &[("SELVEDGE_PROFILE", profile)]).output();
        let output = output.expect("timeout runs");
        (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let everything = "\
queue pairs 16384, requests 32768, pieces 32, regions 1048576, shared queues 65536, windows 65536, reads 128, atomics yes
shared receive queue: well
window: well
region for Atomics: well
regions: 200, then well
queue pair: well, inline data 64
256 bytes of inline data: well
8 pieces: well
10000 requests: well
unreliable connection: well
50 queue pairs more: well
";
    assert_eq!(run(""), (everything.to_owned(), String::new()));

    let few = "\
queue pairs 40, requests 32768, pieces 32, regions 100, shared queues 0, windows 0, reads 128, atomics no
shared receive queue: EOPNOTSUPP
window: EOPNOTSUPP
region for Atomics: EOPNOTSUPP
regions: 100, then ENOMEM
one less, one more: well
queue pair: well, inline data 32
256 bytes of inline data: EINVAL
8 pieces: well
10000 requests: well
unreliable connection: well
50 queue pairs more: ENOMEM
";
    let (told, warned) = run("few-regions,no-srq,no-windows,no-atomics,max_inline=32,max_qp=40");
    assert_eq!(told, few);
    for part in ["max_srq is 0", "max_mr is 100", "max_inline is 32", "max_qp is 40", "in SELVEDGE_PROFILE"] {
        assert!(warned.contains(part), "{part}: {warned}");
    }

    let (told, _) = run("e810");
    assert!(told.contains("requests 8127, pieces 6") && told.contains("8 pieces: EINVAL\n10000 requests: EINVAL"));
    let (told, _) = run("apple-thunderbolt");
    assert!(told.contains("queue pair: EOPNOTSUPP") && told.contains("unreliable connection: well"), "{told}");
    let (told, warned) = run("connectx-99");
    assert_eq!(told, "not opened: EINVAL\n");
    assert!(warned.contains("nobody knows connectx-99: known are apple-thunderbolt, bnxt, e810"), "{warned}");
}

#[test]
fn programs_run_within_the_limits_of_other_nics() {
    if !have(&["ib_write_bw", "ib_send_bw", "ucx_info"]) {
        return;
    }
    for profile in ["e810", "qedr", "pvrdma", "ionic", "bnxt"] {
        let environment = [("SELVEDGE_PROFILE", profile)];
        let pair = Pair { server: LOOPBACK, client: LOOPBACK, address: "127.0.0.1", environment: &environment };
        pair.run("ib_write_bw", &["-F", "-n", "100"]);
        pair.run("ib_send_bw", &["-F", "-n", "100"]);
    }
    // Without shared receive queues UCX has no reliable transport, which users of such a NIC find out too late.
    let looked = |profile: &str| {
        let environment = [("SELVEDGE_PROFILE", profile)];
        let output = LOOPBACK.command(&["ucx_info", "-d"], &environment).output().expect("timeout runs");
        said(&output)
    };
    let refused = "ibv_create_srq() failed: Operation not supported";
    assert!(looked("ionic").contains(refused) && !looked("").contains(refused));
}
