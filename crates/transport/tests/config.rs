//! Spelling of settings in scenario files.
#![cfg(feature = "config")]

use selvedge_transport::recovery::go_back_n::{Acks, GoBackNConfig, Nacks};
use selvedge_transport::recovery::irn::{IrnConfig, Mode, RtoRestart};
use selvedge_transport::{CongestionConfig, RecoveryConfig};
use selvedge_units::{Bytes, Duration, Setting};
use serde_json::{Value, from_value, json, to_value};

fn read(value: Value) -> Result<RecoveryConfig, String> {
    from_value(value).map_err(|error| error.to_string())
}

#[test]
fn an_empty_table_is_the_default() {
    assert_eq!(read(json!({ "irn": {} })), Ok(IrnConfig::default().into()));
    assert_eq!(read(json!({ "go-back-n": {} })), Ok(GoBackNConfig::default().into()));
    assert!(from_value::<CongestionConfig>(json!({ "none": {} })).is_ok());
}

#[test]
fn every_key_is_read() {
    let irn = json!({ "irn": {
        "mode": "hls", "timeouts": "off", "rto-low": "50us", "rto-low-packets": 10, "rto-high": "1.28ms",
        "bdp-cap": "off", "retransmit-delay": "2us", "rto": "static", "sack": true, "extra-header": "16B", "nack-threshold": 1,
        "time-stamps": false, "holes": false,
    }});
    let Ok(RecoveryConfig::Irn(irn)) = read(irn) else { panic!("expected IRN with every key") };
    assert_eq!((irn.mode, irn.rto_low, irn.rto_low_packets), (Mode::Hls, Setting::Value(Duration::from_us(50)), 10));
    assert_eq!((irn.bdp_cap, irn.extra_header), (Setting::Off, Bytes::new(16)));
    let go_back_n = json!({ "go-back-n": {
        "rto": "off", "rto-low": "off", "rto-low-packets": 3, "acks": "none",
        "rto-restart": "any-ack", "nack-processing": "2us", "ack-every": 16, "ack-interval": "8us", "nack": { "interval": "4us" },
        "bdp-cap": "off",
    }});
    let expected = GoBackNConfig {
        rto: Setting::Off,
        rto_low: Setting::Off,
        rto_low_packets: 3,
        rto_restart: RtoRestart::AnyAck,
        nack_processing: Duration::from_us(2),
        acks: Acks::None,
        ack_every: 16,
        ack_interval: Setting::Value(Duration::from_us(8)),
        nack: Nacks::Interval(Duration::from_us(4)),
        bdp_cap: Setting::Off,
    };
    assert_eq!(read(go_back_n), Ok(expected.into()));
}

#[test]
fn what_is_misspelt_is_named() {
    let error = read(json!({ "irn": { "rto-lo": "1us" } })).expect_err("no such key");
    assert!(error.contains("rto-lo") && error.contains("rto-low-packets"), "{error}");
    let error = read(json!({ "irm": {} })).expect_err("no such algorithm");
    assert!(RecoveryConfig::NAMES.iter().all(|name| error.contains(name)), "{error}");
}

#[test]
fn names_and_settings_survive_writing() {
    assert_eq!(RecoveryConfig::all().map(|config| config.name()).collect::<Vec<_>>(), RecoveryConfig::NAMES);
    for config in RecoveryConfig::all() {
        let written = to_value(config).expect("settings serialize");
        assert!(written.get(config.name()).is_some(), "{written}");
        assert_eq!(read(written), Ok(config));
    }
    for config in CongestionConfig::all() {
        let written = to_value(config).expect("settings serialize");
        assert_eq!(from_value::<CongestionConfig>(written).expect("serialized settings deserialize"), config);
    }
}

#[test]
fn the_schema_refuses_unknown_keys_and_knows_defaults() {
    let schema = to_value(schemars::schema_for!(RecoveryConfig)).expect("a schema is JSON");
    let irn = &schema["$defs"]["IrnConfig"];
    assert_eq!(irn["additionalProperties"], json!(false));
    assert_eq!(irn["properties"]["rto-low"]["default"], json!("auto"));
    assert_eq!(schema["oneOf"].as_array().map(Vec::len), Some(RecoveryConfig::NAMES.len()));
}
