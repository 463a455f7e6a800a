//! Profiles: the limits of other NICs, so that programs meet them before they meet the NIC.
//!
//! The only limit of the software NIC is memory. A profile holds the limits that a NIC reports (`ibv_devinfo -v`), from
//! public reports: see `docs/verbs.md` for the sources. Where a NIC holds more than this one, this one's limit counts.

use std::{env, io};

/// Environment variable with a list of profiles and single limits, like `e810` or `no-srq,max_mr=100`.
pub const PROFILE: &str = "SELVEDGE_PROFILE";

/// Limits of a NIC; `None` means this NIC's own limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Profile {
    /// Most queue pairs.
    pub max_qp: Option<u32>,
    /// Most requests in a queue of a queue pair.
    pub max_qp_wr: Option<u32>,
    /// Most scatter/gather elements of a request.
    pub max_sge: Option<u32>,
    /// Most bytes of inline data of a request.
    pub max_inline: Option<u32>,
    /// Most completion queues.
    pub max_cq: Option<u32>,
    /// Most completions in a completion queue.
    pub max_cqe: Option<u32>,
    /// Most memory regions.
    pub max_mr: Option<u32>,
    /// Most bytes of a memory region.
    pub max_mr_size: Option<u64>,
    /// Most memory windows.
    pub max_mw: Option<u32>,
    /// Most protection domains.
    pub max_pd: Option<u32>,
    /// Most shared receive queues.
    pub max_srq: Option<u32>,
    /// Most requests in a shared receive queue.
    pub max_srq_wr: Option<u32>,
    /// Most Reads and Atomics outstanding at a time, in each direction, for each queue pair.
    pub max_rd_atom: Option<u32>,
    /// Whether Atomics are missing.
    pub no_atomics: bool,
    /// Whether memory must be mapped when it is registered (no on-demand paging).
    pub no_odp: bool,
    /// Whether there are only unreliable connections: no reliable ones, no datagrams.
    pub uc_only: bool,
}

const NOTHING: Profile = Profile {
    max_qp: None,
    max_qp_wr: None,
    max_sge: None,
    max_inline: None,
    max_cq: None,
    max_cqe: None,
    max_mr: None,
    max_mr_size: None,
    max_mw: None,
    max_pd: None,
    max_srq: None,
    max_srq_wr: None,
    max_rd_atom: None,
    no_atomics: false,
    no_odp: false,
    uc_only: false,
};

/// All profiles, by name.
const KNOWN: &[(&str, Profile)] = &[
    ("apple-thunderbolt", Profile { max_qp: Some(10), max_mr: Some(100), uc_only: true, ..NOTHING }),
    ("bnxt", Profile { max_qp_wr: Some(4_351), max_rd_atom: Some(126), max_cq: Some(65_536), ..NOTHING }),
    (
        "e810",
        Profile {
            max_qp: Some(4_092),
            max_qp_wr: Some(8_127),
            max_sge: Some(6),
            max_cq: Some(8_189),
            max_cqe: Some(1_048_574),
            max_mr_size: Some(0x2000_0000_0000),
            max_mw: Some(0),
            max_pd: Some(262_141),
            max_srq: Some(0),
            max_rd_atom: Some(8),
            no_atomics: true,
            no_odp: true,
            ..NOTHING
        },
    ),
    ("few-qps", Profile { max_qp: Some(1_024), ..NOTHING }),
    ("few-regions", Profile { max_mr: Some(100), ..NOTHING }),
    ("ionic", Profile { max_srq: Some(0), ..NOTHING }),
    ("no-atomics", Profile { no_atomics: true, ..NOTHING }),
    ("no-odp", Profile { no_odp: true, ..NOTHING }),
    ("no-srq", Profile { max_srq: Some(0), ..NOTHING }),
    ("no-windows", Profile { max_mw: Some(0), ..NOTHING }),
    (
        "pvrdma",
        Profile {
            max_qp_wr: Some(1_024),
            max_sge: Some(16),
            max_cq: Some(4_096),
            max_cqe: Some(262_144),
            max_mr: Some(262_144),
            max_mr_size: Some(0xffff_ffff),
            ..NOTHING
        },
    ),
    (
        "qedr",
        Profile {
            max_qp: Some(8_568),
            max_qp_wr: Some(32_767),
            max_sge: Some(4),
            max_cq: Some(17_136),
            max_mr: Some(131_070),
            max_mr_size: Some(0x100_0000_0000),
            max_pd: Some(65_536),
            max_rd_atom: Some(32),
            ..NOTHING
        },
    ),
    ("small-inline", Profile { max_inline: Some(64), ..NOTHING }),
];

impl Profile {
    /// Returns the limits that [`PROFILE`] chooses.
    ///
    /// # Errors
    /// Returns an error that names the unknown word and lists the known ones.
    pub fn chosen() -> io::Result<Self> {
        let said = env::var_os(PROFILE).unwrap_or_default();
        Self::of(&said.to_string_lossy()).map_err(|problem| io::Error::new(io::ErrorKind::InvalidInput, problem))
    }
    /// Returns the names of all profiles.
    pub fn names() -> impl Iterator<Item = &'static str> {
        KNOWN.iter().map(|(name, _)| *name)
    }

    fn of(list: &str) -> Result<Self, String> {
        let mut all = Self::default();
        for word in list.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            match word.split_once('=') {
                Some((key, value)) => {
                    all.set(key, value).map_err(|expected| format!("{PROFILE}: {word}: {expected}"))?
                }
                None => match KNOWN.iter().find(|(name, _)| *name == word) {
                    Some((_, known)) => all.restrict(known),
                    None => {
                        let names: Vec<_> = Self::names().collect();
                        return Err(format!(
                            "{PROFILE}: nobody knows {word}: known are {}, and limits as max_mr=100",
                            names.join(", ")
                        ));
                    }
                },
            }
        }
        Ok(all)
    }

    /// Returns the limits that can be set individually, with their names.
    fn limits(&mut self) -> [(&'static str, &mut Option<u32>); 12] {
        [
            ("max_qp", &mut self.max_qp),
            ("max_qp_wr", &mut self.max_qp_wr),
            ("max_sge", &mut self.max_sge),
            ("max_inline", &mut self.max_inline),
            ("max_cq", &mut self.max_cq),
            ("max_cqe", &mut self.max_cqe),
            ("max_mr", &mut self.max_mr),
            ("max_mw", &mut self.max_mw),
            ("max_pd", &mut self.max_pd),
            ("max_srq", &mut self.max_srq),
            ("max_srq_wr", &mut self.max_srq_wr),
            ("max_rd_atom", &mut self.max_rd_atom),
        ]
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let number = || value.parse().map_err(|_| "expected a whole number".to_owned());
        if key == "max_mr_size" {
            self.max_mr_size = Some(value.parse().map_err(|_| "expected a number of bytes".to_owned())?);
            return Ok(());
        }
        let mut limits = self.limits();
        if let Some((_, limit)) = limits.iter_mut().find(|(name, _)| *name == key) {
            **limit = Some(number()?);
            return Ok(());
        }
        let names = limits.map(|(name, _)| name).join(", ");
        Err(format!("there is no such limit: known are {names}, max_mr_size"))
    }

    /// Lowers each limit to the other profile's, if that is smaller.
    fn restrict(&mut self, other: &Self) {
        let mut other = *other;
        for ((_, own), (_, theirs)) in self.limits().into_iter().zip(other.limits()) {
            *own = [*own, *theirs].into_iter().flatten().min();
        }
        self.max_mr_size = [self.max_mr_size, other.max_mr_size].into_iter().flatten().min();
        self.no_atomics |= other.no_atomics;
        self.no_odp |= other.no_odp;
        self.uc_only |= other.uc_only;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_and_limits_add_up() {
        assert_eq!(Profile::of(""), Ok(Profile::default()));
        let both = Profile::of("few-regions, no-srq,max_inline=0").expect("known profiles");
        assert_eq!(both, Profile { max_mr: Some(100), max_srq: Some(0), max_inline: Some(0), ..NOTHING });
        // Two profiles give the smaller limit; a single limit overrides them.
        let of = |text| Profile::of(text).expect("a known profile").max_sge;
        assert_eq!((of("e810,qedr"), of("qedr,e810"), of("e810,max_sge=9")), (Some(4), Some(4), Some(9)));
    }

    #[test]
    fn what_nobody_knows_is_refused_with_what_is_known() {
        let refused = |text| Profile::of(text).expect_err("should be refused");
        assert!(refused("e811").starts_with("SELVEDGE_PROFILE: nobody knows e811: known are apple-thunderbolt, bnxt"));
        assert!(refused("max_qps=3").contains("max_qps=3: there is no such limit: known are max_qp, max_qp_wr"));
        assert!(refused("max_qp=many").contains("expected a whole number"));
        assert!(refused("max_mr_size=-1").contains("expected a number of bytes"));
    }

    #[test]
    fn names_are_sorted() {
        assert!(Profile::names().is_sorted());
    }
}
