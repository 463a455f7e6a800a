use std::fs;

use super::*;
use crate::base64;
use crate::keys::Secret;

const ALICE: &str = "dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCo=";

fn public(byte: u8) -> String {
    base64::encode(&Secret::new([byte; 32]).public())
}

/// Returns a good file, with `peers` more peers than one.
fn good() -> String {
    format!(
        r#"name = "a"
addresses = ["192.0.2.1", "2001:db8::1"]
link-rate = "25Gbps"
mtu = 9000
prefixes = ["10.1.0.0/24", "fd00:1::/64"]
inner-addresses = ["10.1.0.1/24", "fd00:1::1/64"]
private-key = "{ALICE}"

[eqif.rdma]
priority = 3
service = "unordered"

[[peer]]
name = "b"
address = "192.0.2.2"
prefixes = ["10.1.1.0/24"]
public-key = "{}"

[[peer]]
name = "c"
address = "2001:db8::3"
prefixes = ["10.1.2.0/24", "fd00:3::/64"]
public-key = "{}"
shared-key = "{}"
mtu = 1500

[[class]]
name = "storage"
prefixes = ["10.1.1.0/25"]
weight = 4
priority = 1
"#,
        public(2),
        public(3),
        base64::encode(&[9; 32]),
    )
}

fn parse(text: &str) -> Result<Config, DocumentError> {
    Config::parse(Path::new("eqds.toml"), text)
}

fn with(from: &str, to: &str) -> String {
    let text = good();
    assert!(text.contains(from), "{from}");
    text.replacen(from, to, 1)
}

#[test]
fn a_good_file_says_who_serves_what() {
    let config = parse(&good()).unwrap();
    let address = |text: &str| text.parse::<IpAddr>().unwrap();
    assert_eq!(config.peer_of(address("10.1.1.9")), Some(0));
    assert_eq!(config.peer_of(address("fd00:3::9")), Some(1));
    assert_eq!(config.peer_of(address("10.1.0.9")), None, "this host's own");
    assert_eq!(config.peer_of(address("198.51.100.1")), None);
    assert!(config.peers[0].serves(address("10.1.1.9")) && !config.peers[0].serves(address("10.1.2.9")));
    assert_eq!(config.class_of(address("10.1.1.9")).map(|class| (class.weight, class.priority)), Some((4, 1)));
    assert_eq!(config.class_of(address("10.1.1.200")), None);
    // Over IPv4: 20 + 8 + 40 + 16; over IPv6 20 more.
    assert_eq!((config.peers[0].inner_mtu, config.peers[1].inner_mtu), (8_916, 1_396));
    assert_eq!(config.inner_mtu(), Some(1_396));
    assert_eq!((config.port, config.path_ports), (49_016, 49_152..=49_167));
    assert_eq!(config.device, "eqds0");
    assert_eq!(
        config.inner_addresses.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["10.1.0.1/24", "fd00:1::1/64"]
    );
    assert_eq!(config.state, Path::new("/var/lib/selvedge/eqds-epochs"));
    assert_eq!((config.eqif.rdma.priority, config.eqif.rdma.service), (3, Service::Unordered));
    assert_eq!(config.eqif.tcp, EqifSettings::default());
}

#[test]
fn both_ends_derive_the_keys_of_one_pair() {
    let theirs = format!(
        "name = \"c\"\naddresses = [\"2001:db8::3\"]\nlink-rate = \"10Gbps\"\nprefixes = [\"10.1.2.0/24\", \"fd00:3::/64\"]\n\
         private-key = \"{}\"\n[[peer]]\nname = \"a\"\naddress = \"2001:db8::1\"\nprefixes = [\"10.1.0.0/24\"]\n\
         public-key = \"{}\"\nshared-key = \"{}\"\n",
        base64::encode(&[3; 32]),
        base64::encode(&Secret::from_base64(ALICE).unwrap().public()),
        base64::encode(&[9; 32]),
    );
    let (a, c) = (parse(&good()).unwrap(), parse(&theirs).unwrap());
    assert_eq!(a.peers[1].pair.outbound().id, c.peers[0].pair.inbound().id);
}

#[test]
fn faults_are_named_with_place_key_and_remedy() {
    let cases = [
        (with("link-rate", "link-rat"), "unknown key \"link-rat\"; did you mean \"link-rate\"?"),
        (with("link-rate = \"25Gbps\"\n", ""), "the key \"link-rate\" is missing"),
        (with("\"25Gbps\"", "\"25\""), "no unit, expected one of"),
        (with("\"25Gbps\"", "\"0Gbps\""), "is no rate of a link"),
        (with("name = \"a\"", "name = \"\""), "is no name"),
        (with("name = \"c\"", "name = \"b\""), "\"b\": this host or another peer is called that"),
        (with("name = \"c\"", "name = \"a\""), "\"a\": this host or another peer is called that"),
        (with("\"192.0.2.1\"", "\"192.0.2\""), "expected an address, as \"192.0.2.1\""),
        (with("\"192.0.2.1\"", "\"0.0.0.0\""), "is not the address of one host"),
        (with("\"192.0.2.1\"", "\"224.0.0.1\""), "is not the address of one host"),
        (with("\"192.0.2.1\"", "\"::ffff:192.0.2.1\""), "write 192.0.2.1"),
        (with("\"2001:db8::1\"", "\"192.0.2.9\""), "one of each at most"),
        (with("[\"192.0.2.1\", \"2001:db8::1\"]", "[]"), "expected this host's address outside"),
        (with(", \"2001:db8::1\"", ""), "is of IPv6, of which this host has no address; add one to `addresses`"),
        (with("\"192.0.2.2\"", "\"192.0.2.1\""), "is this host's own; two daemons cannot share it"),
        (with("\"2001:db8::3\"", "\"192.0.2.2\""), "is the address of peer \"b\", too; two daemons cannot share it"),
        (with("\"10.1.1.0/24\"", "\"10.1.1.5/24\""), "the prefix is \"10.1.1.0/24\""),
        (with("\"10.1.1.0/24\"", "\"10.1.1.0\""), "its prefix is \"10.1.1.0/32\""),
        (with("[\"10.1.1.0/24\"]", "[]"), "no prefix; expected those inside"),
        (with("\"10.1.1.0/24\"", "\"0.0.0.0/0\""), "is everything"),
        (with("\"10.1.1.0/24\"", "\"10.1.0.0/16\""), "overlaps 10.1.0.0/24 of this host, eqds.toml:5:13"),
        (with("\"10.1.2.0/24\"", "\"10.1.1.128/25\""), "overlaps 10.1.1.0/24 of peer \"b\""),
        (with("\"10.1.1.0/24\"", "\"192.0.2.0/24\""), "tunnels would carry themselves"),
        (with("\"10.1.1.0/24\"", "\"192.0.2.2/32\""), "lies in 192.0.2.2/32 of peer \"b\""),
        (with("\"fd00:3::/64\"", "\"2001:db8::/32\""), "tunnels would carry themselves"),
        (with("mtu = 1500", "mtu = 1300"), "1300 is too small: IPv6 inside needs 1280 bytes and the tunnel adds 104"),
        (with("mtu = 9000", "mtu = 600"), "is too small: IPv4 inside needs 576"),
        (with("mtu = 1500", "mtu = 9001"), "more than this host's mtu, 9000; leave it out"),
        (with("mtu = 9000", "mtu = 65536"), "expected 65535 at most"),
        (with("mtu = 9000", "mtu = 9000\npaths = 0"), "0 paths; expected 1 to 256"),
        (with("mtu = 9000", "mtu = 9000\nfirst-path-port = 65530"), "49152 leaves room for all paths"),
        (with("mtu = 9000", "mtu = 9000\nfirst-path-port = 49010"), "include the port on which this host listens"),
        (with("mtu = 9000", "mtu = 9000\nport = 0"), "0 is no port"),
        (with("mtu = 9000", "mtu = 9000\nseal = \"aes\""), "unknown choice \"aes\""),
        (with(ALICE, "secret"), "not a key: expected 32 bytes in base64"),
        (with(&public(2), "secret"), "not a key: expected 32 bytes in base64"),
        (with(&public(2), &base64::encode(&[0; 32])), "this public key is weak"),
        (with(&public(2), &public(3)), "peer \"b\" has the same key"),
        (with(&format!("public-key = \"{}\"\n", public(2)), ""), "peer \"b\" has no key; add public-key, or"),
        (with(&format!("private-key = \"{ALICE}\"\n"), ""), "this host has no private key to use with it"),
        (with(&base64::encode(&[9; 32]), &base64::encode(&[0; 32])), "this key is all zeros; make one"),
        (with("mtu = 9000", "mtu = 9000\ndevice = \"eqds-of-the-first-host\""), "expected 1 to 15 letters, digits"),
        (with("mtu = 9000", "mtu = 9000\ndevice = \"eqds/0\""), "expected 1 to 15 letters, digits"),
        (with("mtu = 9000", "mtu = 9000\ndevice = \"\""), "\"\" is no name of a device"),
        (with("\"10.1.0.1/24\"", "\"10.1.0.1\""), "write one as \"10.1.0.1/24\""),
        (with("\"10.1.0.1/24\"", "\"10.1.1.1/24\""), "10.1.1.1 lies in none of this host's prefixes"),
        (
            with("\"10.1.0.1/24\"", "\"10.1.0.1/16\""),
            "reaches beyond this host's prefix 10.1.0.0/24; write 10.1.0.1/24",
        ),
        (with("\"fd00:1::1/64\"", "\"10.1.0.1/32\""), "10.1.0.1 is in the list twice"),
        (with("public-key", "mtu = 1200\npublic-key"), "on which IPv6 needs 1280; expected 1364 or more"),
        (with("weight = 4", "weight = 0"), "0; expected 1 to 1000"),
        (with("priority = 3", "priority = 8"), "eqif.rdma.priority: 8; expected 0 to 7"),
        (with("priority = 3", "weight = 1001"), "eqif.rdma.weight: 1001; expected 1 to 1000"),
        (with("priority = 3", "queue = \"1KB\""), "eqif.rdma.queue: 1KB does not hold one packet"),
        (with("priority = 3", "queue = \"1MB\"\nmark-above = \"2MB\""), "eqif.rdma.mark-above: 2MB is more than"),
        (with("\"unordered\"", "\"best\""), "eqif.rdma.service"),
        (with("[eqif.rdma]", "[eqif.roce]"), "eqif"),
        (with("priority = 1", "priority = 8"), "8; expected 0 to 7"),
        (with("[[peer]]", "[peer]"), "not TOML"),
    ];
    let mut others = Vec::new();
    for (text, expected) in cases {
        let error = parse(&text).unwrap_err().to_string();
        if !error.starts_with("eqds.toml:") || !error.contains(expected) {
            others.push(format!("{error}\n  expected: {expected}"));
        }
    }
    assert!(others.is_empty(), "{}", others.join("\n"));
}

#[test]
fn places_are_those_of_the_faulty_value() {
    let error = parse(&with("\"10.1.2.0/24\"", "\"10.1.1.128/25\"")).unwrap_err();
    assert_eq!(error.key, "peer[1].prefixes[0]");
    let Place::At { line, column, .. } = error.place else { panic!("{error}") };
    assert_eq!(good().lines().nth(line - 1).unwrap().split_at(column - 1).1, "\"10.1.2.0/24\", \"fd00:3::/64\"]");
}

#[cfg(unix)]
#[test]
fn secrets_that_others_can_read_are_refused() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = std::env::temp_dir().join(format!("selvedge-config-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let (file, key) = (folder.join("eqds.toml"), folder.join("a.key"));
    let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    fs::write(&file, good()).unwrap();
    mode(&file, 0o644);
    let error = Config::read(&file).unwrap_err().to_string();
    assert!(error.contains("private-key: ") && error.contains("chmod 600"), "{error}");
    mode(&file, 0o600);
    assert!(Config::read(&file).is_ok());

    let by_file = with(&format!("private-key = \"{ALICE}\""), "private-key-file = \"a.key\"");
    fs::write(&file, by_file.replace(&format!("shared-key = \"{}\"\n", base64::encode(&[9; 32])), "")).unwrap();
    mode(&file, 0o644);
    let error = Config::read(&file).unwrap_err().to_string();
    assert!(error.contains("private-key-file: no file") && error.contains("wg genkey"), "{error}");
    fs::write(&key, format!("{ALICE}\n")).unwrap();
    mode(&key, 0o640);
    assert!(Config::read(&file).unwrap_err().to_string().contains("the mode 640"));
    mode(&key, 0o600);
    assert!(Config::read(&file).is_ok(), "a file without secrets may be read by all");
    fs::write(&key, "secret").unwrap();
    assert!(Config::read(&file).unwrap_err().to_string().contains("not a key"));
    fs::write(&file, with(ALICE, &format!("{ALICE}\"\nprivate-key-file = \"a.key"))).unwrap();
    mode(&file, 0o600);
    assert!(Config::read(&file).unwrap_err().to_string().contains("keep one of both"));
    assert!(Config::read(&folder.join("none")).unwrap_err().to_string().contains("no such file"));
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn arbitrary_texts_are_a_file_or_an_error() {
    let text = good();
    for at in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
        let _ = parse(&text[..at]);
        let _ = parse(&format!("{}{}", &text[..at], &text[at + 1..]));
    }
}

#[test]
fn the_schema_has_every_key() {
    let schema = schema();
    for key in [
        "device",
        "inner-addresses",
        "name",
        "addresses",
        "link-rate",
        "prefixes",
        "private-key-file",
        "peer",
        "class",
        "seal",
        "paths",
    ] {
        assert!(schema["properties"][key].is_object(), "{key}");
    }
    assert_eq!(schema["additionalProperties"], Value::Bool(false));
}

#[test]
fn the_committed_schema_is_current() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schema/eqds.schema.json");
    let current = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    if std::env::var_os("SELVEDGE_WRITE_SCHEMA").is_some() {
        fs::write(file, &current).unwrap();
    }
    let committed = fs::read_to_string(file).expect("schema/eqds.schema.json is part of the repository");
    assert!(committed == current, "out of date: run `cargo xtask schema` and commit it");
}
