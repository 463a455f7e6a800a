//! Network of a scenario alone, whether or not the rest of the scenario can run.

use std::path::Path;
use std::sync::Arc;

use selvedge_document::Document;
use selvedge_sim::Network;
use selvedge_sim::topology::Framing;

use super::builder::Builder;
use super::{Changes, document_at};
use crate::draft::Draft;
use crate::error::ScenarioError;
use crate::library::FileLibrary;
use crate::origin::built_in;
use crate::scenario::Scenario;

/// Returns the network of a scenario's first series and its framing, whether or not the rest of the scenario can
/// run, and warnings about the scenario. `None`: the built-in one.
///
/// # Errors
/// Returns an error if the scenario cannot be read, or has no valid network.
pub fn network_of_scenario(
    path: Option<&Path>,
    changes: &Changes,
) -> Result<(Arc<Network>, Framing, Vec<String>), ScenarioError> {
    let (document, library) = match path {
        Some(path) => document_at(path)?,
        None => built_in()?,
    };
    let draft = Draft::read(document, changes)?;
    let variants = draft.variants(changes.series.as_deref())?;
    let mut builder = Builder::new(&draft, library);
    let network = builder.network(&variants[0])?;
    let Scenario { nic, transport, .. } = &variants[0].scenario;
    let framing = builder.framing(&variants[0], &network).unwrap_or_else(|_| nic.framing(transport));
    let warnings = match builder.plan(variants, false) {
        Ok(plan) => plan.warnings,
        Err(error) => {
            let cannot = format!("a run of this scenario would be refused: {error}");
            builder.library.warnings().into_iter().chain([cannot]).collect()
        }
    };
    Ok((network, framing, warnings))
}

/// Returns the network of a document's first series and its framing, even if the rest of the document is
/// incomplete.
pub(crate) fn network_of_document(
    document: Document,
    library: FileLibrary,
    changes: &Changes,
) -> Result<(Arc<Network>, Framing, FileLibrary), ScenarioError> {
    let draft = Draft::read(document, changes)?;
    let variants = draft.variants(changes.series.as_deref())?;
    let mut builder = Builder::new(&draft, library);
    let network = builder.network(&variants[0])?;
    let framing = builder.framing(&variants[0], &network)?;
    Ok((network, framing, builder.library))
}
