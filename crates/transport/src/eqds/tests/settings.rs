//! Bad settings, and the remedies that their errors name.

use selvedge_units::{Bytes, Duration, Setting};

use crate::Fabric;
use crate::eqds::eqif::RdmaEqif;
use crate::eqds::{EqdsConfig, LifeConfig, LossConfig, Service, Source};

/// Returns the error of settings that differ from the default in one value.
fn error(change: impl FnOnce(&mut EqdsConfig)) -> alloc::string::String {
    let mut config = EqdsConfig::default();
    change(&mut config);
    let frame = Bytes::new(1_500);
    config.resolve(&Fabric::IRN_PAPER, frame, true, false);
    alloc::format!("{}", config.check(frame).expect_err("a bad setting"))
}

#[test]
fn a_bad_setting_is_named_with_its_remedy() {
    let cases = [
        (error(|config| config.pull_quanta = 0), "pull-quanta: 0 is out of range; give 1 to 1024"),
        (
            error(|config| config.pull_catch_up = Duration::from_ms(2_000)),
            "pull-catch-up: 2s is out of range; give at most 1s",
        ),
        (
            error(|config| config.loss.rto_floor = Duration::ZERO),
            "loss.rto-floor: a timeout of zero never waits; give 10ns or more",
        ),
        (
            error(|config| config.loss = LossConfig { rto_ceiling: Duration::from_us(1), ..config.loss }),
            "loss.rto-ceiling: 1us is less than `rto-floor`, 1ms; give that or more",
        ),
        (
            error(|config| config.loss.gap_wait = Setting::Value(Duration::ZERO)),
            "loss.gap-wait: a timeout of zero never waits; give 10ns or more",
        ),
        (
            error(|config| config.life.idle_timeout = Setting::Value(Duration::ZERO)),
            "life.idle-timeout: a timeout of zero never waits; give 10ns or more",
        ),
        (
            error(|config| config.life.most_tunnels = Setting::Value(0)),
            "life.most-tunnels: 0 would carry nothing; give 1 or more",
        ),
        (
            error(|config| config.eqif.rdma = Some(RdmaEqif { delay: Duration::from_ms(2), ..RdmaEqif::default() })),
            "eqif.rdma.delay: 2ms is out of range; give at most 1ms",
        ),
    ];
    for (said, expected) in cases {
        assert_eq!(said, expected);
    }
}

#[test]
fn defaults_are_the_paper_s() {
    let config = EqdsConfig::default();
    assert_eq!((config.loss.timeout, config.bounds), (Source::Fixed, Source::Fixed));
    assert_eq!((config.loss.path_margin, config.loss.gap_wait), (Setting::Off, Setting::Off));
    assert_eq!(config.life, LifeConfig::default());
    assert_eq!((config.pull_catch_up, config.pull_quanta), (Duration::ZERO, 1));
}

#[test]
fn each_eqif_has_its_service() {
    let mut config = EqdsConfig::default();
    config.eqif.tcp = Some(Default::default());
    config.eqif.rdma = Some(Default::default());
    if let (Some(tcp), Some(rdma)) = (&mut config.eqif.tcp, &mut config.eqif.rdma) {
        (tcp.service, rdma.service) = (Service::Unreliable, Service::Auto);
    }
    let frame = Bytes::new(1_500);
    config.resolve(&Fabric::IRN_PAPER, frame, true, false);
    let own = config.params(frame, Bytes::new(20)).expect("sound settings");
    let eqif = config.eqif_params(&own, true).expect("sound settings").expect("EQIFs");
    let services = [0, 1, 2, 9].map(|number| (eqif.of(number).ordered, eqif.of(number).reliable));
    let auto = (config.ordered == selvedge_units::Toggle::On, true);
    assert_eq!(services, [(false, true), (false, false), auto, auto]);
}
