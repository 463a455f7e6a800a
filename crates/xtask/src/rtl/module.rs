//! Hardware modules, and the variants in which they are built.

use std::fs;

use anyhow::{Context, Result};

use crate::workspace::root;

/// Module with one context in and one out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Module {
    ReceiveData,
    TxFree,
    ReceiveAck,
    Timeout,
}

/// Module in one variant and width.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Build {
    pub(super) module: Module,
    /// Whether the module takes an event per cycle; otherwise it is like for like with the paper.
    pub(super) pipelined: bool,
    /// Bits of a bitmap.
    pub(super) bitmap: u32,
}

impl Module {
    pub(super) const ALL: [Self; 4] = [Self::ReceiveData, Self::TxFree, Self::ReceiveAck, Self::Timeout];

    /// Returns the name of the module's file, without its extension.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::ReceiveData => "receive_data",
            Self::TxFree => "tx_free",
            Self::ReceiveAck => "receive_ack",
            Self::Timeout => "timeout",
        }
    }
    /// Returns whether the module has variants and a bitmap.
    pub(super) fn has_parameters(self) -> bool {
        self != Self::Timeout
    }
}

impl Build {
    /// Returns all modules in both variants, `timeout` once.
    pub(super) fn all(bitmap: u32) -> impl Iterator<Item = Self> {
        let builds = [true, false]
            .into_iter()
            .flat_map(move |pipelined| Module::ALL.into_iter().map(move |module| Self { module, pipelined, bitmap }));
        builds.filter(|build| build.pipelined || build.module.has_parameters())
    }

    /// Returns the name for files: "tx_free-pipelined-128".
    pub(super) fn name(self) -> String {
        let module = self.module.name();
        if !self.module.has_parameters() {
            return module.to_owned();
        }
        let variant = if self.pipelined { "pipelined" } else { "like-for-like" };
        format!("{module}-{variant}-{}", self.bitmap)
    }
    /// Returns the number of cycles from input to output.
    pub(super) fn latency(self) -> u32 {
        match (self.module, self.pipelined) {
            (Module::Timeout, _) => 1,
            (_, true) => 4,
            (_, false) => 3,
        }
    }
    /// Returns the number of cycles from one event to the next.
    pub(super) fn interval(self) -> u32 {
        if self.pipelined { 1 } else { 4 }
    }
    /// Returns the widths in bits of the input and the output of the module's `rtl/sim/flat_*.sv`.
    pub(super) fn flat_bits(self) -> (u32, u32) {
        let receiver = 48 + 2 * self.bitmap;
        let sender = 99 + self.bitmap;
        match self.module {
            Module::ReceiveData => (29 + receiver, 73 + self.bitmap.ilog2() + 1 + receiver),
            Module::TxFree => (49 + sender, 25 + sender),
            Module::ReceiveAck => (49 + sender, sender),
            Module::Timeout => (24 + 99, 1 + 99),
        }
    }
}

/// Returns the files of `rtl/src`, the package first, relative to `rtl`.
pub(super) fn sources() -> Result<Vec<String>> {
    let folder = root().join("rtl/src");
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".sv") && name != "irn_pkg.sv" {
            names.push(format!("src/{name}"));
        }
    }
    names.sort();
    names.insert(0, "src/irn_pkg.sv".to_owned());
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_module_has_its_file_and_its_flat_form() {
        for module in Module::ALL {
            for path in [format!("rtl/src/{}.sv", module.name()), format!("rtl/sim/flat_{}.sv", module.name())] {
                assert!(root().join(&path).is_file(), "{path}");
            }
        }
        assert_eq!(Build::all(128).count(), 7);
    }
}
