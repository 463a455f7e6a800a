//! Paths of files that a scenario names, made valid from any folder.

use selvedge_sim::ConfigError;
use selvedge_sim::fault::{DropList, LossModel};
use selvedge_sim::topology::Topology;
use selvedge_sim::workload::{Sizes, WorkloadConfig};

use crate::library::FileLibrary;
use crate::scenario::Scenario;

/// Makes paths absolute, so that the scenario can run from any folder; inputs that came through pipes keep a relative
/// path.
pub(super) fn absolute_paths(scenario: &mut Scenario, library: &FileLibrary) -> Result<(), ConfigError> {
    let resolved = |key: &str, path: &str| {
        library.resolve(path).into_os_string().into_string().map_err(|place| {
            let message = format!("{}: the path is no text in UTF-8; rename what leads there", place.display());
            ConfigError::new(key, message)
        })
    };
    let absolute = |key: &str, path: &mut String| resolved(key, path).map(|place| *path = place);
    if let Topology::File(file) = &mut scenario.topology {
        absolute("topology.file.path", &mut file.path)?;
    }
    for loss in &mut scenario.loss {
        if let LossModel::Trace(DropList::Path(path)) = &mut loss.model {
            absolute("loss", path)?;
        }
    }
    let WorkloadConfig {
        goal,
        flows,
        poisson,
        closed_loop,
        verbs,
        // Workloads without files.
        incast: _,
        permutation: _,
        all_to_all: _,
        collective: _,
        mixture_of_experts: _,
        pipeline: _,
    } = &mut scenario.workload;
    goal.0.iter_mut().try_for_each(|goal| absolute("workload.goal.path", &mut goal.path))?;
    flows.0.iter_mut().try_for_each(|flows| absolute("workload.flows.path", &mut flows.path))?;
    let sizes = poisson.0.iter_mut().map(|poisson| &mut poisson.sizes);
    let sizes = sizes.chain(closed_loop.0.iter_mut().map(|closed| &mut closed.sizes));
    for sizes in sizes.chain(verbs.0.iter_mut().map(|verbs| &mut verbs.sizes)) {
        if let Sizes::Named(reference) = sizes
            && let Some(path) = reference.strip_prefix("file:")
        {
            *reference = format!("file:{}", resolved("workload", path)?);
        }
    }
    Ok(())
}
