//! Switches of a network, for packets that others carry.

use selvedge_switch::Parts;

use crate::config::SimConfig;
use crate::error::{ConfigError, Library};
use crate::kernel::rounds::Parallel;
use crate::run::{Built, build_with};
use crate::workload::{Workload, WorkloadConfig};

/// Returns the switches of a configuration, and their links, for a [`selvedge_switch::Fabric`] whose packets have these
/// `priorities`, 0 to 7, beside those of the configuration. Its traffic does not matter.
///
/// # Errors
/// The first part that cannot be built; the key is that of a scenario file.
pub fn fabric_parts(config: &SimConfig, library: &dyn Library, priorities: &[u8]) -> Result<Parts, ConfigError> {
    let mut traffic = if config.workload == WorkloadConfig::default() {
        Workload::of_injected().with_injected(config.paths.graph())
    } else {
        config.traffic(library)?
    };
    if let Some(summary) = traffic.summaries.first_mut() {
        summary.priorities.extend(priorities);
    }
    let Built { mut partitions, changes, .. } = build_with::<false>(config, traffic, library, Parallel::default())?;
    let partition = partitions.pop().expect("a run has at least one partition");
    let fabric = &partition.edge.fabric;
    let [class_of @ .., data] = fabric.class_of;
    let known =
        config.switch.priorities(&config.nic, &config.transport, config.beside.as_ref(), &partition.workload.summaries);
    Ok(Parts {
        attachments: fabric.attachment.clone(),
        class_of: std::array::from_fn(|p| if known.contains(&(p as u8)) { class_of[p] } else { data }),
        switches: partition.net,
        losses: partition.edge.losses,
        changes,
    })
}
