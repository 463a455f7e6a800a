//! Network, switches and links of a file alone, for real packets.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use selvedge_document::Document;
use selvedge_sim::config::{
    Looks, MOST_CLASSES, NicConfig, PathTransports, RdmaConfig, SimConfig, Stop, SwitchConfig, TransportConfig,
};
use selvedge_sim::fault::{LinkFailure, LossConfig, LossPlan, link_events};
use selvedge_sim::workload::{Measure, WorkloadConfig};
use selvedge_sim::{Network, fabric_parts, port_infos};
use selvedge_switch::Parts;
use selvedge_transport::{Fabric, Scheme};
use selvedge_units::Bytes;

use super::builder::Builder;
use super::{Changes, document_at};
use crate::draft::Draft;
use crate::error::{Place, ScenarioError};
use crate::library::FileLibrary;

/// Keys of scenarios that a rack has no use for: its traffic is that of real programs.
const IDLE: &[&str] = &["workload", "beside", "stop", "measure", "sample", "series", "case", "sweep", "smoke"];
/// Values for the keys that scenarios must have and a rack need not.
const OPTIONAL: &[&str] = &["title = \"rack\"", "workload = {}"];

/// A rack: the tables `[topology]`, `[switch]`, `[nic]`, `[[loss]]` and `[[failures]]` of a file, without an "auto".
#[derive(Clone, Debug)]
pub struct Rack {
    /// Name of the file, as the user gave it.
    pub name: String,
    /// Network.
    pub network: Arc<Network>,
    /// Switches.
    pub switch: SwitchConfig,
    /// Sizes of packets on the wire, and classes.
    pub nic: NicConfig,
    /// Packets that links lose.
    pub loss: Vec<LossConfig>,
    /// Links that fail.
    pub failures: Vec<LinkFailure>,
    /// Seed of all random decisions: the first one of the file.
    pub seed: u64,
    /// Library of the files that the rack names.
    pub library: FileLibrary,
    /// Notes for the user: tables without effect, and warnings.
    pub notes: Vec<String>,
}

impl Rack {
    /// Returns the switches and links of the rack, and the names of their ports (`leaf0:spine1`) by number.
    ///
    /// Buffers and thresholds that count frames count frames of `frame` bytes. Packets have these `priorities`, 0 to 7,
    /// beside those of the file; others travel with data.
    ///
    /// # Errors
    /// Returns the first part that cannot be built.
    pub fn fabric(&self, frame: Bytes, priorities: &[u8]) -> Result<(Parts, Vec<String>), ScenarioError> {
        // Hosts send by programs of their own; any transport that knows its network will do.
        let mut transport = RdmaConfig::default();
        transport.recovery.resolve(&Fabric::IRN_PAPER);
        let transport = TransportConfig::from(transport);
        let mut all: BTreeSet<u8> = self.switch.priorities(&self.nic, &transport, None, &[]).into_iter().collect();
        all.extend(priorities);
        if all.len() > MOST_CLASSES {
            let many = all.len();
            let message =
                format!("{many} priorities would have classes, with those of the file; at most {MOST_CLASSES} can");
            return Err(ScenarioError::argument("--priority", message));
        }
        let mtu = frame.saturating_sub(self.nic.data_header(&transport));
        let config = SimConfig {
            paths: Arc::clone(self.network.paths()),
            switch: self.switch.clone(),
            nic: NicConfig { mtu, ..self.nic.clone() },
            transport,
            transports: Vec::new(),
            path_transports: PathTransports::default(),
            workload: WorkloadConfig::default(),
            beside: None,
            measure: Measure::default(),
            loss: self.loss.clone(),
            failures: self.failures.clone(),
            seed: self.seed,
            stop: Stop::default(),
            sample: None,
            looks: Looks::Never,
        };
        let parts = fabric_parts(&config, &self.library, priorities)
            .map_err(|error| ScenarioError::new(Place::File(self.name.clone()), error.key, error.message))?;
        let names = port_infos(self.network.graph()).into_iter().map(|port| format!("{}:{}", port.node, port.peer));
        Ok((parts, names.collect()))
    }

    /// Returns the rack in a file, which may be a whole scenario. Values of "auto" that depend on the transport are
    /// those for the file's transport.
    ///
    /// # Errors
    /// Returns the first error, with its place and valid values.
    pub fn from_file(path: &Path, sets: &[String]) -> Result<Self, ScenarioError> {
        let (document, library) = document_at(path)?;
        Self::from_document(&path.display().to_string(), document, library, sets)
    }

    /// Returns the rack of the file content `text`, which messages call `name`; paths in it are relative to `folder`.
    ///
    /// # Errors
    /// Returns an error under the conditions of [`Rack::from_file`].
    pub fn from_text(name: &str, text: &str, folder: &Path) -> Result<Self, ScenarioError> {
        Self::from_document(name, Document::parse(name, text)?, FileLibrary::new(folder), &[])
    }

    pub(crate) fn from_document(
        name: &str,
        document: Document,
        library: FileLibrary,
        sets: &[String],
    ) -> Result<Self, ScenarioError> {
        let written = document.table();
        let idle: Vec<String> =
            IDLE.iter().filter(|key| written.contains_key(**key)).map(|key| (*key).to_owned()).collect();
        let changes = Changes { sets: sets.to_vec(), ..Changes::default() };
        let draft = Draft::read(document.completed(OPTIONAL)?, &changes)?;
        let variant = draft.base_variant()?;
        let mut builder = Builder::new(&draft, library);
        let network = builder.network(&variant)?;
        let (scenario, mut notes) = builder.settled(&variant, &network)?;
        let library = builder.library.among(network.graph());
        let seed = scenario.seeds.list().first().copied().unwrap_or(1);
        let graph = network.graph();
        LossPlan::new(graph, &scenario.loss, seed, &library).map_err(|error| builder.error(&variant, "loss", error))?;
        link_events(graph, &scenario.failures).map_err(|error| builder.error(&variant, "failures", error))?;
        if !idle.is_empty() {
            let keys = idle.join(", ");
            notes.insert(0, format!("{name}: without effect on real packets: {keys}"));
        }
        notes.extend(library.warnings());
        let (switch, nic) = (scenario.switch, scenario.nic);
        let (loss, failures) = (scenario.loss, scenario.failures);
        Ok(Self { name: name.to_owned(), network, switch, nic, loss, failures, seed, library, notes })
    }
}
