//! Switches of a network, for packets that others carry.

use selvedge_switch::descriptor::Attachment;
use selvedge_switch::loss::LaneLoss;
use selvedge_switch::{Change, Switches};

use crate::config::SimConfig;
use crate::error::{ConfigError, Library};
use crate::kernel::{Built, Parallel, build};

/// Switches of a network, with the links between them and to hosts: what a [`selvedge_switch::Fabric`] needs.
///
/// Ports are numbered as in results: hosts' ports first, by host, then those of switches.
pub struct Rack {
    /// Switches and ports.
    pub switches: Switches,
    /// Loss of the links into each port, by port.
    pub losses: Vec<Option<Box<LaneLoss>>>,
    /// Place of each host, by number.
    pub attachments: Vec<Attachment>,
    /// Class of each priority, 0 to 7. Priorities that nothing in the network knows have the class of data.
    pub class_of: [u8; 8],
    /// Failures and repairs of links, latest first.
    pub changes: Vec<Change>,
}

impl Rack {
    /// Builds the switches of a configuration. Of its traffic, only priorities matter.
    ///
    /// # Errors
    /// The first part that cannot be built; the key is that of a scenario file.
    pub fn new(config: &SimConfig, library: &dyn Library) -> Result<Self, ConfigError> {
        let Built { mut partitions, changes, .. } = build::<false>(config, library, Parallel::default())?;
        let partition = partitions.pop().expect("a run has at least one partition");
        let fabric = &partition.edge.fabric;
        let [class_of @ .., data] = fabric.class_of;
        let known = config.switch.priorities(&config.nic, config.beside.as_ref(), &partition.workload.summaries);
        let class_of = std::array::from_fn(|p| if known.contains(&(p as u8)) { class_of[p] } else { data });
        Ok(Self {
            attachments: fabric.attachment.clone(),
            class_of,
            switches: partition.net,
            losses: partition.edge.losses,
            changes,
        })
    }
}
