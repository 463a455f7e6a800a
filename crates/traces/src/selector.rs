//! Selectors of what to trace: `flow=12`, `port=h3:leaf0`, `all`.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use selvedge_sim::record::{Chosen, FlowKey, Focus};
use selvedge_sim::topology::Graph;
use selvedge_units::PortId;

use crate::names::PortNames;

/// One item to trace, as the user names it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Selector {
    /// All flows and ports.
    All,
    /// A flow, by its number and that of its workload.
    Flow(FlowKey),
    /// A port by its name or number, or all ports of a node by the node's name.
    Port(String),
}

impl FromStr for Selector {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("\"{text}\" names nothing to trace: {FORMS}");
        match text.split_once('=') {
            None if text == "all" => Ok(Self::All),
            Some(("flow", key)) => {
                let (workload, id) = key.split_once(':').unwrap_or(("0", key));
                let workload = workload.parse().map_err(|_| wrong())?;
                let id = id.parse().map_err(|_| wrong())?;
                Ok(Self::Flow(FlowKey { workload, id }))
            }
            Some(("port", name)) if !name.is_empty() => Ok(Self::Port(name.to_owned())),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Flow(FlowKey { workload: 0, id }) => write!(f, "flow={id}"),
            Self::Flow(FlowKey { workload, id }) => write!(f, "flow={workload}:{id}"),
            Self::Port(name) => write!(f, "port={name}"),
        }
    }
}

/// Accepted forms of selectors, for messages.
const FORMS: &str = "say flow=12 (flow 12 of the first workload), flow=1:12 (of the second), port=h3:leaf0 \
                     (a port), port=leaf0 (all ports of a node), port=17 (a port by number), or all";

/// The flows and ports to trace.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Selection {
    flows: Chosen<FlowKey>,
    ports: Chosen<PortId>,
}

impl Selection {
    /// Returns the selection that `selectors` name in a fabric with these ports.
    ///
    /// # Errors
    /// Returns an error for a port that does not exist; the message lists those that do.
    pub fn new(selectors: &[Selector], names: &PortNames) -> Result<Self, String> {
        if selectors.contains(&Selector::All) {
            return Ok(Self { flows: Chosen::All, ports: Chosen::All });
        }
        let (mut flows, mut ports) = (BTreeSet::new(), BTreeSet::new());
        for selector in selectors {
            match selector {
                Selector::All => {}
                Selector::Flow(key) => drop(flows.insert(*key)),
                Selector::Port(name) => ports.extend(ports_called(name, names)?),
            }
        }
        Ok(Self { flows: Chosen::These(flows), ports: Chosen::These(ports) })
    }

    /// Returns the flows that were selected by number.
    pub fn flows(&self) -> impl Iterator<Item = FlowKey> {
        match &self.flows {
            Chosen::All => None,
            Chosen::These(these) => Some(these.iter().copied()),
        }
        .into_iter()
        .flatten()
    }

    /// Returns the estimated share of all packets that the selection covers, given the numbers of ports and `flows` of
    /// a run.
    pub fn share(&self, graph: &Graph, flows: f64) -> f64 {
        let part = |some: usize, all: f64| some as f64 / all.max(1.0);
        let of_flows = if let Chosen::These(these) = &self.flows { part(these.len(), flows) } else { 1.0 };
        let of_ports = if let Chosen::These(these) = &self.ports {
            part(these.len(), 2.0 * graph.links.len() as f64)
        } else {
            1.0
        };
        (of_flows + of_ports).min(1.0)
    }

    /// Returns the focus that the simulator must record. Pauses anywhere may be the reason why a flow waits.
    pub fn focus(&self) -> Focus {
        Focus { flows: self.flows.clone(), ports: self.ports.clone(), pauses: true, ..Focus::default() }
    }
}

fn ports_called(name: &str, names: &PortNames) -> Result<Vec<PortId>, String> {
    let ports = names.find(name);
    if ports.is_empty() {
        let (last, first) = (names.count() - 1, PortId(0));
        return Err(format!(
            "there is no port \"{name}\": ports are numbered 0 to {last} and called \"{}\" to \"{}\", by the node that a \
             port belongs to and the one that it leads to",
            names.name(first),
            names.name(PortId(last as u32))
        ));
    }
    Ok(ports)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_what_is_meant() {
        let flow = |workload, id| Ok(Selector::Flow(FlowKey { workload, id }));
        assert_eq!("all".parse(), Ok(Selector::All));
        assert_eq!("flow=12".parse(), flow(0, 12));
        assert_eq!("flow=1:12".parse(), flow(1, 12));
        assert_eq!("port=h3:leaf0".parse(), Ok(Selector::Port("h3:leaf0".to_owned())));
        assert_eq!("port=h3 - leaf0".parse(), Ok(Selector::Port("h3 - leaf0".to_owned())));
        for text in ["flow=12", "flow=1:12", "port=17", "all"] {
            assert_eq!(text.parse::<Selector>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_means_nothing_says_what_would() {
        for text in ["", "12", "flow", "flow=", "flow=x", "flow=-1", "flow=1:", "flow=1:2:3", "port=", "ports=1", "All"]
        {
            let message = text.parse::<Selector>().unwrap_err();
            assert!(message.starts_with(&format!("\"{text}\" names nothing to trace: say flow=12")), "{message}");
        }
    }
}
