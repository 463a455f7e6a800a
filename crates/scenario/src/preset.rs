//! Schemes by their short names: "irn", "irn+pfc", "roce+pfc".
//!
//! A name is a loss recovery and any number of modifiers: `<recovery>[+<modifier>]...`. To add a
//! recovery, add its line to [`RECOVERIES`]; every congestion control of the registry is a modifier
//! already.

use selvedge_transport::CongestionConfig;
use toml::{Table, Value};

use crate::document::unknown_name;

/// Loss recoveries: short name, key in `[transport.recovery.<key>]`, what it is.
const RECOVERIES: &[(&str, &str, &str)] =
    &[("irn", "irn", "selective retransmission, BDP-FC (IRN)"), ("roce", "go-back-n", "go-back-N, as in RoCE NICs")];

/// What a preset sets, apart from the recovery and congestion controls.
const PFC: &str = "pfc";

/// One scheme, taken apart.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Preset {
    recovery: &'static str,
    congestion: Option<&'static str>,
    pfc: bool,
}

impl Preset {
    /// Reads "irn+pfc".
    pub(crate) fn parse(name: &str) -> Result<Self, String> {
        let mut words = name.split('+').map(str::trim);
        let recovery = words.next().unwrap_or_default();
        let Some(&(_, recovery, _)) = RECOVERIES.iter().find(|(short, ..)| *short == recovery) else {
            let known: Vec<&str> = RECOVERIES.iter().map(|&(short, ..)| short).collect();
            return Err(unknown_name("scheme", recovery, &known) + &format!(" (in \"{name}\"; {EXAMPLE})"));
        };
        let mut preset = Self { recovery, congestion: None, pfc: false };
        for word in words {
            match CongestionConfig::NAMES.iter().find(|control| **control == word) {
                _ if word == PFC && !preset.pfc => preset.pfc = true,
                Some(control) if preset.congestion.is_none() => preset.congestion = Some(control),
                Some(_) => return Err(format!("\"{name}\" names two congestion controls; give one")),
                None if word == PFC => return Err(format!("\"{name}\" says pfc twice")),
                None => {
                    let known: Vec<&str> = [PFC].into_iter().chain(CongestionConfig::NAMES.iter().copied()).collect();
                    return Err(unknown_name("modifier", word, &known) + &format!(" (in \"{name}\"; {EXAMPLE})"));
                }
            }
        }
        Ok(preset)
    }

    /// What it sets in the scenario `base`: keys and values. An algorithm that the base has chosen
    /// already keeps the base's settings.
    pub(crate) fn sets(&self, base: &Table) -> Vec<(&'static str, Value)> {
        let mut sets = vec![("switch.pfc.enabled", Value::Boolean(self.pfc))];
        let algorithms = [("transport.recovery", "recovery", Some(self.recovery))].into_iter().chain([(
            "transport.congestion",
            "congestion",
            self.congestion,
        )]);
        for (path, role, algorithm) in algorithms {
            let Some(algorithm) = algorithm else { continue };
            let chosen = base.get("transport").and_then(|transport| transport.get(role));
            if chosen.is_none_or(|chosen| chosen.get(algorithm).is_none()) {
                let kind = Table::from_iter([(algorithm.to_owned(), Value::Table(Table::new()))]);
                sets.push((path, Value::Table(kind)));
            }
        }
        sets
    }
}

/// The grammar and all names, for help texts: one line per name.
pub fn preset_help() -> String {
    let mut lines = vec!["<recovery>[+<modifier>]..., as in irn+pfc".to_owned()];
    lines.extend(RECOVERIES.iter().map(|(short, _, about)| format!("  {short:8} {about}")));
    lines.push(format!("  +{PFC:7} priority flow control"));
    lines.extend(CongestionConfig::NAMES.iter().map(|name| format!("  +{name:7} congestion control")));
    lines.join("\n")
}

const EXAMPLE: &str = "schemes are written as in irn, irn+pfc, roce+pfc";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_four_schemes_of_the_question() {
        let preset = |name| Preset::parse(name).expect("a preset");
        assert_eq!(preset("irn"), Preset { recovery: "irn", congestion: None, pfc: false });
        assert_eq!(preset("irn+pfc"), Preset { recovery: "irn", congestion: None, pfc: true });
        assert_eq!(preset("roce+pfc"), Preset { recovery: "go-back-n", congestion: None, pfc: true });
        assert_eq!(preset("roce"), Preset { recovery: "go-back-n", congestion: None, pfc: false });
    }

    #[test]
    fn every_congestion_control_is_a_modifier() {
        for &name in CongestionConfig::NAMES {
            let preset = Preset::parse(&format!("roce+{name}+pfc")).expect("a preset");
            assert_eq!(preset, Preset { recovery: "go-back-n", congestion: Some(name), pfc: true });
        }
    }

    #[test]
    fn what_is_unknown_is_answered_with_what_is_known() {
        let wrong = |name| Preset::parse(name).expect_err("not a preset");
        assert!(wrong("inr").starts_with("unknown scheme \"inr\"; did you mean \"irn\"?"), "{}", wrong("inr"));
        assert!(wrong("tcp2").contains("known here: irn or roce"), "{}", wrong("tcp2"));
        assert!(wrong("irn+pcf").contains("did you mean \"pfc\"?"), "{}", wrong("irn+pcf"));
        assert!(wrong("irn+pfc+pfc").contains("twice"));
        assert!(wrong("").contains("irn or roce"));
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
}
