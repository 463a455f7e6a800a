//! Scenario files, as users write them.
//!
//! [`Scenario`] composes the configuration types of the crates below into one file format, from which [`schema()`]
//! derives a JSON Schema. A [`Plan`] is a checked scenario: its series and seeds expanded, every "auto" resolved, every
//! error reported with its place and its remedy.
//!
//! No other crate knows the syntax of scenario files.
#![forbid(unsafe_code)]

mod check;
mod describe;
mod device;
mod digest;
mod draft;
mod edit;
mod error;
mod facts;
mod flows;
mod footprint;
mod input;
mod library;
mod listed;
mod origin;
mod plan;
mod preset;
mod ranges;
mod scenario;
mod schema;
mod series;
mod stored;
mod suggest;
mod sweep;
#[cfg(test)]
mod tests;
mod written;

pub use device::{Device, DeviceKind, DeviceTable};
pub use error::{Place, ScenarioError};
pub use facts::{FlowFacts, LinkFacts, PathFacts, SourceFacts, TopologyFacts, WorkloadFacts};
pub use footprint::{FootprintFacts, ItemFacts, NicUse, PublishedFacts, SchemeFacts};
pub use library::FileLibrary;
pub use origin::{BUILT_IN, network_from_file};
pub use plan::{Changes, KeyValue, Plan, PlannedSeries, Point, Rack, World, network_of_scenario};
pub use preset::{preset_help, scheme_names};
pub use scenario::{Case, Scenario, Seeds};
pub use schema::{KeyHelp, schema};
pub use selvedge_sim::{AutoScope, Network};
pub use series::Series;
pub use stored::{StoredSeries, stored_series};
pub use sweep::{Grid, GridAxis, GridPoint, Sweep};
