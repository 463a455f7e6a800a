//! The network of a laboratory, made and removed.

use std::fs;
use std::io;

use super::layout::{HOST_SETTINGS, Layout, Node, SWITCH_SETTINGS};
use super::plan::Plan;
use super::processes;
use crate::iproute::{explained, ip_batch, tc_batch};
use crate::netns::Netns;

/// Namespaces and links. Dropping the value ends all processes in them and removes them.
#[derive(Debug)]
pub struct Network {
    namespaces: Vec<Netns>,
}

impl Network {
    /// Makes the network. It asks `is_ended` between two steps whether to give up.
    ///
    /// # Errors
    /// Returns an error for a wrong plan, without permission ([`acquire`](crate::impair::acquire)), without `ip` or,
    /// with a rate, `tc`, when a name is taken, or of kind `Interrupted` when it gave up. Nothing is left then.
    pub fn open(plan: &Plan, is_ended: &mut dyn FnMut() -> bool) -> io::Result<Self> {
        plan.check().map_err(|why| io::Error::new(io::ErrorKind::InvalidInput, why))?;
        let layout = Layout::new(plan);
        let mut network = Self { namespaces: Vec::with_capacity(layout.nodes.len()) };
        let mut go_on = || if is_ended() { Err(io::Error::from(io::ErrorKind::Interrupted)) } else { Ok(()) };
        for node in &layout.nodes {
            go_on()?;
            let namespace = Netns::new(&node.name)?;
            let settings = if node.is_switch { SWITCH_SETTINGS } else { HOST_SETTINGS };
            namespace.visit(|| settings.iter().try_for_each(|(name, value)| set(name, value)))?;
            network.namespaces.push(namespace);
        }
        ip_batch(&[], &layout.links)?;
        for Node { name, ip, tc, .. } in &layout.nodes {
            go_on()?;
            ip_batch(&["-n", name], ip)?;
            tc_batch(&["-n", name], tc)?;
        }
        Ok(network)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let names: Vec<&str> = self.namespaces.iter().map(Netns::name).collect();
        // A namespace whose name is gone lives as long as its last process.
        processes::end(&processes::within(&names));
    }
}

/// Sets a value of the kernel, in the namespace of this thread.
pub(super) fn set(name: &str, value: &str) -> io::Result<()> {
    let path = format!("/proc/sys/{name}");
    fs::write(&path, value).map_err(explained(&format!("cannot write {path}")))
}
