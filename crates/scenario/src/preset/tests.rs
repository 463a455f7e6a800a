use selvedge_transport::RecoveryConfig;

use super::*;

#[test]
fn the_four_schemes_of_the_question() {
    let preset = |name| Preset::parse(name).expect("a preset");
    let plain = |name, pfc| Preset { pfc, ..Preset::of(scheme(name)) };
    assert_eq!(preset("irn"), plain("irn", false));
    assert_eq!(preset("irn+pfc"), plain("irn", true));
    assert_eq!(preset("roce+pfc"), plain("roce", true));
    assert_eq!(preset("roce"), plain("roce", false));
    assert_eq!(preset("roce").engine(), Engine::Recovery("go-back-n"));
}

fn scheme(name: &str) -> &'static Scheme {
    SCHEMES.iter().find(|scheme| scheme.name == name).expect("a scheme")
}

/// Checks that all names in the tables exist: otherwise a typing error in a line would only show when the line is used.
#[test]
fn the_tables_name_what_exists() {
    for scheme in SCHEMES.iter() {
        let Engine::Recovery(key) = scheme.engine else { continue };
        assert!(RecoveryConfig::NAMES.contains(&key), "{key}");
    }
    for variant in VARIANTS {
        assert!(SCHEMES.iter().any(|scheme| scheme.name == variant.of), "{}", variant.of);
        if let Beside::Congestion(control) = variant.beside {
            assert!(scheme(variant.of).controls().contains(&control), "{control}");
        }
    }
    assert!(IN_TUNNELS.iter().all(|(control, _)| CongestionConfig::NAMES.contains(control)));
}

#[test]
fn every_congestion_control_is_a_modifier() {
    for &name in CongestionConfig::NAMES {
        let preset = Preset::parse(&format!("roce+{name}+pfc")).expect("a preset");
        let expected = Preset { congestion: Some(name), pfc: true, ..Preset::of(scheme("roce")) };
        assert_eq!(preset, expected);
    }
}

#[test]
fn tcp_has_controls_of_its_own() {
    let preset = Preset::parse("tcp+cubic+pfc").expect("a preset");
    let expected = Preset { congestion: Some("cubic"), pfc: true, ..Preset::of(scheme("tcp")) };
    assert_eq!(preset, expected);
    let wrong = Preset::parse("irn+cubic").expect_err("not RDMA's");
    assert!(wrong.contains("unknown modifier \"cubic\""), "{wrong}");
}

#[test]
fn tcp_and_rdma_replace_each_other() {
    let sets = |name, base: &str| {
        let base: Table = toml::from_str(base).expect("TOML");
        Preset::parse(name).expect("a preset").sets(&base)[1..].to_vec()
    };
    let value = |text| Value::Table(toml::from_str(text).expect("TOML"));
    assert_eq!(sets("tcp", "[transport.recovery.irn]"), [("transport", value("tcp = {}"))]);
    let with_cubic = [("transport", value("tcp = {}")), ("transport.tcp.congestion", value("cubic = {}"))];
    assert_eq!(sets("tcp+cubic", ""), with_cubic);
    let base = "[transport.tcp]\nsack = false\ncongestion = { cubic = {} }";
    assert_eq!(sets("tcp+cubic", base), [], "the base's settings survive");
    assert_eq!(sets("irn", base), [("transport", value("recovery = { irn = {} }"))]);
}

#[test]
fn netrt_is_go_back_n_and_a_setting_of_switches() {
    let preset = |name| Preset::parse(name).expect("a preset");
    assert_eq!(preset("netrt").engine(), preset("roce").engine());
    let base: Table = toml::from_str("[switch.netrt]\nenabled = true").expect("TOML");
    let set = ("switch.netrt.enabled", Value::Boolean(true));
    assert!(preset("netrt+dcqcn+drill").sets(&Table::new()).contains(&set));
    assert!(!preset("netrt").sets(&base).contains(&set), "it is there already");
    assert!(preset("irn").sets(&base).contains(&("switch.netrt.enabled", Value::Boolean(false))));
}

#[test]
fn ndp_brings_switches_that_trim() {
    let sets = |base: &str| -> Vec<String> {
        let base: Table = toml::from_str(base).expect("TOML");
        let sets = Preset::parse("ndp").expect("a preset").sets(&base);
        sets.iter().map(|(path, value)| format!("{path} = {value}")).skip(1).collect()
    };
    let all = ["transport = { ndp = {} }", "switch.buffer = { trimming = {} }", "nic.ack-class = 6"];
    assert_eq!(sets("[switch.buffer.shared-buffer]"), all);
    let base = "nic.ack-class = 5\n[switch.buffer.trimming]\npackets = 35\n[transport.ndp]\npaths = 4";
    assert_eq!(sets(base), [""; 0], "the base's settings survive");
    let base = "[switch.buffer.trimming]\nheader-class = 5\n[transport.ndp]";
    assert_eq!(sets(base), ["nic.ack-class = 5"], "pulls do not wait behind data");
    let wrong = Preset::parse("ndp+dcqcn").expect_err("its receivers set the pace");
    assert!(wrong.contains("unknown modifier"), "{wrong}");
}

#[test]
fn stacks_can_be_sent_through_tunnels() {
    let sets = |name, base: &str| -> Vec<String> {
        let base: Table = toml::from_str(base).expect("TOML");
        let sets = Preset::parse(name).expect("a preset").sets(&base);
        sets.iter().map(|(path, value)| format!("{path} = {value}").replace('\n', "")).skip(1).collect()
    };
    let trims = ["switch.buffer = { trimming = {} }", "nic.ack-class = 6"];
    let carried = |transport| [&[transport][..], &trims].concat();
    assert_eq!(
        sets("tcp+eqds", "[transport.recovery.irn]"),
        carried("transport = { eqds = { eqif = { tcp = {} } }, tcp = {} }")
    );
    let roce = "transport = { eqds = { eqif = { rdma = {} } }, recovery = { go-back-n = {} } }";
    assert_eq!(sets("roce+eqds", ""), carried(roce));
    assert_eq!(sets("roce+eqds+rts", ""), [roce, "transport.eqds.burst = false"]);
    let near = sets("roce+dcqcn+eqds", "");
    assert!(near.contains(&"transport.congestion.dcqcn.increase-timer = \"750us\"".to_owned()), "{near:?}");
    let base = "[transport.tcp]\nsack = false\n[transport.eqds]\npaths = 4\neqif.tcp.limit = 30";
    let [first, ..] = &sets("tcp+eqds", base)[..] else { panic!("expected at least one key") };
    assert!(["sack = false", "paths = 4", "limit = 30"].iter().all(|kept| first.contains(kept)), "{first}");
    assert_eq!(sets("tcp", base), ["transport = { tcp = { sack = false } }"]);
    assert_eq!(sets("eqds", base)[0], "transport = { eqds = { paths = 4 } }");
    assert_eq!(sets("irn", base)[0], "transport = { recovery = { irn = {} } }");
    for wrong in ["ndp+eqds", "netrt+eqds", "eqds+eqds"] {
        assert!(Preset::parse(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn any_scheme_can_be_balanced() {
    let sets = |name, base: &str| {
        let base: Table = toml::from_str(base).expect("TOML");
        let sets = Preset::parse(name).expect("a preset").sets(&base);
        sets.iter().map(|(path, value)| format!("{path} = {value}")).next_back().expect("the preset sets a key")
    };
    assert_eq!(sets("irn+spray", ""), "switch.balancing = \"spray\"");
    assert_eq!(sets("tcp+drill", ""), "switch.balancing = { drill = {} }");
    assert_eq!(sets("roce+pfc+flowlet+dcqcn", ""), "switch.balancing = { flowlet = {} }");
    let base = "[transport.recovery.irn]\n[switch.balancing.drill]\nchoices = 3";
    assert_eq!(sets("irn+drill", base), "switch.pfc.enabled = false", "the base's settings survive");
    let wrong = Preset::parse("irn+drill+spray").expect_err("should be refused");
    assert!(wrong.contains("balances by drill and by spray"), "{wrong}");
}

#[test]
fn variants_of_irn_are_modifiers() {
    let sets = |name: &str| -> Vec<String> {
        let sets = Preset::parse(name).expect("a preset").sets(&Table::new());
        sets.iter().map(|(path, value)| format!("{path} = {value}")).skip(1).collect()
    };
    assert_eq!(sets("irn+no-sack+pfc"), ["transport.recovery = { irn = {} }", "transport.recovery.irn.sack = false"]);
    let go_back_n = [
        "transport.recovery = { go-back-n = {} }",
        "transport.recovery.go-back-n.acks = \"per-packet\"",
        "transport.recovery.go-back-n.bdp-cap = \"auto\"",
        "transport.recovery.go-back-n.rto-low = \"auto\"",
    ];
    assert_eq!(sets("irn+go-back-n+pfc"), go_back_n);
    assert_eq!(sets("irn+go-back-n"), go_back_n);
    let wrong = |name| Preset::parse(name).expect_err("should be refused");
    assert!(wrong("roce+no-sack").contains("a variant of irn"));
    assert!(wrong("irn+no-sack+no-sack").contains("twice"));
    assert!(wrong("irn+no-sack+go-back-n").contains("nothing left"));
}

#[test]
fn the_baseline_of_irns_paper_is_roce_with_other_acknowledgements() {
    let preset = |name| Preset::parse(name).expect("a preset");
    assert_eq!(preset("roce-baseline+dcqcn+pfc"), preset("roce+dcqcn+baseline+pfc"));
    let set = ("transport.recovery.go-back-n.acks", Value::String("without-pfc".into()));
    assert!(preset("roce-baseline+pfc").sets(&Table::new()).contains(&set));
    assert!(!preset("roce+pfc").sets(&Table::new()).contains(&set));
}

#[test]
fn what_is_unknown_is_answered_with_what_is_known() {
    let wrong = |name| Preset::parse(name).expect_err("should be refused");
    assert!(wrong("inr").starts_with("unknown scheme \"inr\"; did you mean \"irn\"?"), "{}", wrong("inr"));
    assert!(
        wrong("quic").contains("known here: irn, roce, netrt, melo, tcp, eqds, ndp, homa, mptcp or roce-baseline"),
        "{}",
        wrong("quic")
    );
    assert!(wrong("irn+pcf").contains("did you mean \"pfc\"?"), "{}", wrong("irn+pcf"));
    assert!(wrong("irn+pfc+pfc").contains("twice"));
    assert_eq!(wrong("roce+eqds+eqds"), "\"roce+eqds+eqds\" says eqds twice");
    assert!(wrong("").contains("irn, roce, netrt, melo, tcp, eqds, ndp, homa, mptcp or roce-baseline"));
}

#[test]
fn the_settings_of_the_base_survive() {
    let base: Table = toml::from_str("[transport.recovery.irn]\nrto-low = '200us'").expect("TOML");
    let sets = Preset::parse("irn").expect("a preset").sets(&base);
    assert_eq!(sets, [("switch.pfc.enabled", Value::Boolean(false))]);
    let sets = Preset::parse("roce+pfc").expect("a preset").sets(&base);
    assert_eq!(sets.len(), 2);
    assert_eq!(sets[1].0, "transport.recovery");
}
