//! Targets of synthesis, and their source files.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context, Result};

use super::module::{Build, Module, sources};
use crate::workspace::root;

/// Module between two flat vectors, in one variant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Target {
    /// Name for files: "tx_free-pipelined-128".
    pub(super) name: String,
    /// Name of the flat module, and its file relative to `rtl`.
    pub(super) flat: &'static str,
    pub(super) file: String,
    /// Parameters, as "W=128".
    pub(super) parameters: Vec<String>,
    /// Widths of the input and of the output in bits.
    pub(super) bits: (u32, u32),
    /// Whether the target is placed and routed, too.
    pub(super) is_routed: bool,
    /// Whether the module contains contexts.
    pub(super) has_memory: bool,
}

/// Number of queue pairs of the synthesised top: as many as the context memories of one block RAM's depth hold.
pub(super) const QUEUE_PAIRS: u32 = 1_024;

/// Widest bitmap that is placed and routed: receive_data at 1,024 packets takes longer than the rest together.
const WIDEST_ROUTED: u32 = 320;

impl Target {
    /// Returns all targets, the most wanted first.
    pub(super) fn all() -> Vec<Self> {
        let widths = [128, 320, 1_024].into_iter();
        let mut all: Vec<Self> = Vec::new();
        for bitmap in widths {
            let builds = Build::all(bitmap).filter(|build| build.module.has_parameters() || bitmap == 128);
            all.extend(builds.map(Self::of_build));
        }
        all.extend([Self::melo_receiver(), Self::melo_sender(), Self::top(true), Self::top(false)]);
        all
    }

    pub(super) fn of_build(build: Build) -> Self {
        let flat = match build.module {
            Module::ReceiveData => "flat_receive_data",
            Module::TxFree => "flat_tx_free",
            Module::ReceiveAck => "flat_receive_ack",
            Module::Timeout => "flat_timeout",
        };
        let parameters = if build.module.has_parameters() {
            vec![format!("W={}", build.bitmap), format!("Pipelined={}", u8::from(build.pipelined))]
        } else {
            Vec::new()
        };
        Self {
            name: build.name(),
            flat,
            file: format!("sim/{flat}.sv"),
            parameters,
            bits: build.flat_bits(),
            is_routed: build.bitmap <= WIDEST_ROUTED,
            has_memory: false,
        }
    }

    /// Returns the top with W = 128.
    pub(super) fn top(pipelined: bool) -> Self {
        let qp = QUEUE_PAIRS.ilog2();
        let variant = if pipelined { "pipelined" } else { "like-for-like" };
        Self {
            name: format!("irn_top-{variant}-128"),
            flat: "flat_irn_top",
            file: "synth/flat_irn_top.sv".to_owned(),
            parameters: vec![
                "W=128".to_owned(),
                format!("Pipelined={}", u8::from(pipelined)),
                format!("QueuePairs={QUEUE_PAIRS}"),
            ],
            bits: (206 + 5 * qp, 105 + 8 + 3 * qp),
            is_routed: true,
            has_memory: true,
        }
    }

    /// Returns MELO's receiver with 128 blocks and 64 connections.
    pub(super) fn melo_receiver() -> Self {
        Self::melo("flat_melo_rx", (221 + 2 * 6, 297 + 8))
    }

    /// Returns MELO's sender with 128 blocks and 64 connections.
    pub(super) fn melo_sender() -> Self {
        Self::melo("flat_melo_tx", (170 + 6, 76 + 8))
    }

    fn melo(flat: &'static str, bits: (u32, u32)) -> Self {
        Self {
            name: format!("{}-128", flat.trim_start_matches("flat_")),
            flat,
            file: format!("synth/{flat}.sv"),
            parameters: vec!["Blocks=128".to_owned(), "Connections=64".to_owned()],
            bits,
            is_routed: true,
            has_memory: true,
        }
    }

    /// Returns a number that changes with the target's inputs: its files without comments, its parameters, and `how`.
    pub(super) fn stamp(&self, how: &str) -> Result<String> {
        let mut text = format!("{how}\n{}\n{}\n", self.flat, self.parameters.join(" "));
        for file in self.files()? {
            let path = root().join("rtl").join(&file);
            let source = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            text += &without_comments(&source);
        }
        // FNV-1a.
        let hash = text
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        Ok(format!("{hash:016x}"))
    }

    /// Returns the files that the target needs, by name.
    fn files(&self) -> Result<BTreeSet<String>> {
        let mut known = sources()?;
        known.extend(CONTEXTS.map(|name| format!("src/{name}")));
        let mut found = BTreeSet::from([self.file.clone(), "synth/scan.sv".to_owned()]);
        let mut waiting: Vec<String> = found.iter().cloned().collect();
        while let Some(file) = waiting.pop() {
            let path = root().join("rtl").join(&file);
            let text = without_comments(&fs::read_to_string(&path).with_context(|| path.display().to_string())?);
            let words: BTreeSet<&str> = text.split(|c: char| !(c.is_alphanumeric() || c == '_')).collect();
            for file in &known {
                let stem = file.trim_start_matches("src/").split('.').next().unwrap_or_default();
                if words.contains(stem) && found.insert(file.clone()) {
                    waiting.push(file.clone());
                }
            }
        }
        Ok(found)
    }
}

/// Files of `rtl/src` that are generated from the layout of contexts.
pub(super) const CONTEXTS: [&str; 3] = ["irn_receiver.svh", "irn_sender.svh", "irn_timer.svh"];

/// Returns the words of a source without comments, with one space between them.
fn without_comments(source: &str) -> String {
    let lines = source.lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_made_of_the_files_that_its_modules_name() {
        let timeout = Target::of_build(Build { module: Module::Timeout, pipelined: true, bitmap: 128 });
        let files: Vec<String> = timeout.files().expect("readable").into_iter().collect();
        let expected = [
            "sim/flat_timeout.sv",
            "src/irn_pkg.sv",
            "src/irn_timer.svh",
            "src/pipe_stage.sv",
            "src/stream_control.sv",
            "src/timeout.sv",
            "synth/scan.sv",
        ];
        assert_eq!(files, expected);
        let top = Target::top(true).files().expect("readable");
        assert!(top.contains("src/context_stage.sv") && top.contains("src/receive_ack.sv"), "{top:?}");
    }

    #[test]
    fn comments_and_blanks_do_not_make_another_target() {
        assert_eq!(without_comments("  a // b\n\n// c\n  d  e\n"), "a d e");
        let target = Target::melo_receiver();
        let stamp = target.stamp("x").expect("readable");
        assert_eq!(stamp, target.stamp("x").expect("readable"));
        assert_ne!(stamp, target.stamp("y").expect("readable"));
    }

    #[test]
    fn every_target_has_a_name_of_its_own() {
        let all = Target::all();
        let names: BTreeSet<&str> = all.iter().map(|target| target.name.as_str()).collect();
        assert_eq!(names.len(), all.len());
    }
}
