//! Check that dependencies point downwards only: the table of ARCHITECTURE.md, against Cargo's own view.

use super::Complaint;
use crate::workspace::Package;

/// Crates and their layers. A crate may name those of lower layers.
const LAYERS: &[(&str, u8)] = &[
    ("selvedge-units", 0),
    ("selvedge-memory", 0),
    ("selvedge-prefetch", 0),
    ("selvedge-wire", 1),
    ("selvedge-telemetry", 1),
    ("selvedge-formats", 1),
    ("selvedge-document", 1),
    ("selvedge-transport", 2),
    ("selvedge-nic", 3),
    ("selvedge-switch", 3),
    ("selvedge-tunnel", 3),
    ("selvedge-native", 3),
    ("selvedge-testkit", 3),
    ("selvedge-sim", 4),
    ("selvedge-dataplane", 4),
    ("selvedge-scenario", 5),
    ("selvedge-results", 5),
    ("selvedge-traces", 5),
    ("selvedge-ibverbs", 5),
    ("selvedge-native-c", 5),
    ("selvedge-udp", 5),
    ("selvedge-study", 6),
    ("selvedge-explain", 6),
    ("selvedge", 7),
    ("selvedge-py", 7),
];

/// Crates with fewer dependencies than their layer allows, and all of Selvedge's crates that they may name.
const NARROW: &[(&str, &[&str])] = &[
    // Readers of other simulators' files depend on no other crate of Selvedge.
    ("selvedge-formats", &["selvedge-units"]),
    // Reads texts of any format.
    ("selvedge-document", &["selvedge-units"]),
    // Rows from either world; never runs anything.
    ("selvedge-results", &["selvedge-units", "selvedge-telemetry"]),
    // Loaded into programs of others.
    ("selvedge-native", &[]),
    ("selvedge-native-c", &["selvedge-native"]),
    ("selvedge-udp", &["selvedge-native"]),
    ("xtask", &[]),
];

/// Crates without clock, files and threads, and the only foreign crates that they may name.
pub(super) const PURE: &[&str] =
    &["selvedge-units", "selvedge-wire", "selvedge-telemetry", "selvedge-transport", "selvedge-nic"];
const PURE_MAY_NAME: &[&str] = &["serde", "schemars", "libm", "wide", "bytemuck"];

/// Crate for tests only.
const TESTKIT: &str = "selvedge-testkit";

pub(super) fn check(packages: &[Package]) -> Vec<Complaint> {
    packages.iter().flat_map(check_package).collect()
}

fn check_package(package: &Package) -> Vec<Complaint> {
    let name = package.name.as_str();
    let narrow = NARROW.iter().find(|(narrow, _)| *narrow == name).map(|(_, allowed)| *allowed);
    let Some(layer) = layer(name).or(narrow.map(|_| u8::MAX)) else {
        return vec![Complaint::new(name, "has no layer: give it one in xtask/src/tidy/layers.rs and ARCHITECTURE.md")];
    };
    let complain =
        |dependency: &str, why: String| Complaint::new(name, format!("may not depend on {dependency}: {why}"));
    let mut complaints = Vec::new();
    for dependency in &package.dependencies {
        let other = dependency.name.as_str();
        if other == TESTKIT {
            if !dependency.dev {
                complaints.push(complain(other, "it is for tests".to_owned()));
            }
        } else if let Some(below) = self::layer(other) {
            if below >= layer {
                complaints.push(complain(other, format!("layer {layer} names lower layers only, not layer {below}")));
            } else if let Some(allowed) = narrow.filter(|allowed| !allowed.contains(&other) && !dependency.dev) {
                let allowed = if allowed.is_empty() { "none" } else { &allowed.join(" and ") };
                complaints.push(complain(other, format!("of ours it may name {allowed}")));
            }
        } else if PURE.contains(&name) && !dependency.dev && !PURE_MAY_NAME.contains(&other) {
            complaints
                .push(complain(other, format!("pure crates name only {} from outside", PURE_MAY_NAME.join(", "))));
        }
    }
    complaints
}

fn layer(name: &str) -> Option<u8> {
    LAYERS.iter().find(|(known, _)| *known == name).map(|(_, layer)| *layer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Dependency;

    fn complaints(name: &str, dependency: &str, dev: bool) -> usize {
        let dependency = Dependency { name: dependency.into(), dev };
        check(&[Package {
            name: name.into(),
            description: String::new(),
            folder: "".into(),
            roots: vec![],
            dependencies: vec![dependency],
        }])
        .len()
    }

    #[test]
    fn dependencies_point_downwards() {
        assert_eq!(complaints("selvedge-nic", "selvedge-transport", false), 0);
        assert_eq!(complaints("selvedge-transport", "selvedge-nic", false), 1);
        assert_eq!(complaints("selvedge-sim", "selvedge-dataplane", false), 1);
        assert_eq!(complaints("selvedge-sim", "selvedge-dataplane", true), 1);
    }

    #[test]
    fn exceptions_hold() {
        assert_eq!(complaints("selvedge-transport", "selvedge-testkit", true), 0);
        assert_eq!(complaints("selvedge-transport", "selvedge-testkit", false), 1);
        assert_eq!(complaints("selvedge-results", "selvedge-sim", false), 1);
        assert_eq!(complaints("selvedge-results", "selvedge-telemetry", false), 0);
        assert_eq!(complaints("selvedge-wire", "serde", false), 0);
        assert_eq!(complaints("selvedge-wire", "rand", false), 1);
        assert_eq!(complaints("selvedge-wire", "proptest", true), 0);
        assert_eq!(complaints("xtask", "selvedge-units", false), 1);
        assert_eq!(complaints("selvedge-new", "serde", false), 1);
    }
}
