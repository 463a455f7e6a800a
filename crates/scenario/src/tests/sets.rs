//! Tests of changes by the command line: `--set`, `--series`, `--seeds`, `--smoke`.

use selvedge_sim::config::BufferConfig;
use selvedge_transport::recovery::RecoveryConfig;
use selvedge_units::{Duration, Setting};

use super::{BASE, extended, plan, variants, with_sets};
use crate::{Changes, Plan, Point, Seeds};

#[test]
fn sets_reach_the_series_that_they_fit() {
    let changes = with_sets(&["transport.recovery.irn.rto-low=50us", "workload.poisson.load=0.3", "seeds=[7]"]);
    let plan = Plan::built_in(&changes).expect("the scenario is valid");
    assert_eq!(plan.seeds, [7]);
    for series in &plan.series {
        assert_eq!(series.workloads[0].load, Some(0.3));
        if let RecoveryConfig::Irn(irn) = series.scenario.transport.rdma().expect("queue pairs").recovery {
            assert_eq!(irn.rto_low, Setting::Value(Duration::from_us(50)));
        }
    }
}

#[test]
fn sets_of_stacks_reach_the_series_that_have_them() {
    let names = "eqds,roce,roce+eqds,irn,tcp,tcp+eqds,melo";
    let reached = |set: &str| -> Vec<String> {
        let (plain, changed) = (variants(BASE, &[], Some(names)), variants(BASE, &[set], Some(names)));
        let (plain, changed) = (plain.unwrap(), changed.unwrap_or_else(|error| panic!("{set}: {error}")));
        let pairs = plain.iter().zip(&changed);
        pairs.filter(|(plain, changed)| plain.scenario != changed.scenario).map(|(of, _)| of.name.clone()).collect()
    };
    assert_eq!(reached("transport.eqds.eqif.rdma.engine-rate=off"), ["roce+eqds"]);
    assert_eq!(reached("transport.eqds.eqif.tcp.share.weight=2"), ["tcp+eqds"]);
    assert_eq!(reached("transport.eqds.eqif.encapsulation=44B"), ["roce+eqds", "tcp+eqds"]);
    assert_eq!(reached("transport.eqds.eqif.native.weight=2"), ["eqds", "roce+eqds", "tcp+eqds"]);
    assert_eq!(reached("transport.recovery.melo.pool-bits=512"), ["melo"]);
    assert_eq!(reached("transport.recovery.go-back-n.rto=1ms"), ["roce", "roce+eqds"]);
    assert_eq!(reached("transport.tcp.sack=false"), ["tcp", "tcp+eqds"]);
    let idle = |names: &str| variants(BASE, &["transport.eqds.eqif.rdma.engine-rate=off"], Some(names)).unwrap_err();
    assert!(idle("irn,roce").contains("transport is \"recovery\" here, not \"eqds\""), "{}", idle("irn,roce"));
    let tcp = idle("tcp+eqds");
    assert!(tcp.contains("nothing that goes there is \"rdma\": give a series that is, as \"roce+eqds\""), "{tcp}");
    // RDMA in tunnels, and TCP beside it.
    let both = BASE.to_owned() + "[beside]\nworkloads = ['poisson']\n";
    let limit = variants(&both, &["transport.eqds.eqif.tcp.limit=50"], Some("roce+eqds"));
    assert!(limit.is_ok(), "{limit:?}");
}

#[test]
fn sets_of_tunnels_reach_the_series_that_have_them() {
    let sets = with_sets(&["transport.eqds.paths=4"]);
    let planned = plan(&extended(""), &Changes { series: Some("irn,eqds".into()), ..sets.clone() })
        .expect("the scenario is valid");
    let paths = |index: usize| planned.series[index].transport.tunnels().copied().map(|eqds| eqds.paths);
    assert_eq!([paths(0), paths(1)], [None, Some(4)]);
    let none = plan(&extended(""), &Changes { series: Some("irn".into()), ..sets }).expect_err("no series has them");
    assert!(none.to_string().contains("transport is \"recovery\" here, not \"eqds\""), "{none}");
}

#[test]
fn a_scheme_is_the_same_whatever_the_text_is_about() {
    for scheme in ["eqds", "ndp"] {
        let text = extended(&format!("[transport.{scheme}]\n"));
        let changes = Changes { series: Some(scheme.into()), ..Changes::default() };
        let planned = plan(&text, &changes).expect("the scenario is valid");
        assert!(matches!(planned.series[0].scenario.switch.buffer, BufferConfig::Trimming(_)), "{scheme}");
    }
}

#[test]
fn the_command_line_chooses_series_and_seeds() {
    let changes = Changes {
        series: Some("roce, irn+fixed+pfc".to_owned()),
        seeds: Some(Seeds::List(vec![3, 9])),
        ..Changes::default()
    };
    let plan = Plan::built_in(&changes).expect("the scenario is valid");
    let names: Vec<&str> = plan.series.iter().map(|series| &*series.name).collect();
    assert_eq!(names, ["roce", "irn+fixed+pfc"]);
    assert_eq!(plan.series[1].scenario.transport.rdma().expect("queue pairs").congestion.name(), "fixed");
    let [warning] = &plan.warnings[..] else { panic!("one: {:?}", plan.warnings) };
    assert!(warning.contains("fixed.window") && warning.contains("nothing is limited"), "{warning}");
    let points: Vec<Point> = plan.points().collect();
    assert_eq!(points[1], Point { series: 0, seed: 9 });
    assert_eq!(plan.config(points[1]).seed, 9);
}

#[test]
fn smoke_applies_only_when_wanted() {
    let text = format!("stop = {{ flows = 1000 }}\n{BASE}[smoke]\nseeds = 2\n\"stop.flows\" = 10\n");
    let whole = plan(&text, &Changes::default()).expect("the scenario is valid");
    assert_eq!((whole.seeds.len(), whole.series[0].flows), (5, Some(1000)));
    let quick = plan(&text, &Changes { smoke: true, ..Changes::default() }).expect("the scenario is valid");
    assert_eq!((quick.seeds.len(), quick.series[0].flows), (2, Some(10)));
    assert!(variants(&text.replace("stop.flows", "stop.flow"), &[], None).is_err(), "even when it is not wanted");
}
