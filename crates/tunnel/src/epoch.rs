//! Key epochs: numbers that a daemon uses once, over restarts, also after its disk is lost.
//!
//! An epoch is greater than all that were used before, because of what was stored, and because epochs are at least the
//! seconds since 2024: if epochs last a second on average, the clock alone would do. Either failing is no harm.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::gate::Floor;

/// Seconds from 1970 to 2024.
const BEGIN: u64 = 1_704_067_200;

/// Giver of key epochs.
#[derive(Clone, Debug)]
pub struct Epochs {
    /// The next epoch.
    next: u32,
    /// First epoch that may be used only after it has been stored.
    reserved: u32,
    /// Greatest epoch that a peer's floor may lead to.
    ceiling: u32,
}

/// Reason why there is no epoch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EpochError {
    /// The next epoch must be stored first: see [`Epochs::reserve`].
    #[error("the next key epoch is not reserved on disk")]
    Unreserved,
    /// A peer claims to know an epoch too far in the future to be true.
    #[error("a peer claims to have seen key epoch {0}, which is too far ahead to be true; is this host's clock right?")]
    TooFarAhead(u32),
    /// All epochs were used.
    #[error("no key epochs are left; make a new key")]
    Exhausted,
}

impl Epochs {
    /// Epochs that are reserved by one write. A host that starts more often than once in as many seconds uses epochs
    /// faster than its clock, and needs its disk.
    pub const BLOCK: u32 = 16;
    /// Epochs by which a peer's floor may be ahead of the clock: 194 days.
    pub const AHEAD: u32 = 1 << 24;

    /// Creates a giver that continues behind what was stored, if anything was. `clock` is the time in seconds since
    /// 1970.
    pub fn new(stored: Option<u32>, clock: u64) -> Self {
        let by_clock = u32::try_from(clock.saturating_sub(BEGIN)).unwrap_or(u32::MAX).max(1);
        let next = stored.unwrap_or(0).max(by_clock);
        Self { next, reserved: next, ceiling: next.saturating_add(Self::AHEAD) }
    }

    /// Returns the number to be stored before further epochs are used; call [`Epochs::stored`] once it is.
    pub fn reserve(&self) -> u32 {
        self.next.saturating_add(Self::BLOCK)
    }
    /// Records that `number`, which [`Epochs::reserve`] returned, is on disk.
    pub fn stored(&mut self, number: u32) {
        self.reserved = self.reserved.max(number);
    }
    /// Returns whether less than half of a block is left.
    pub fn is_low(&self) -> bool {
        self.reserved.saturating_sub(self.next) < Self::BLOCK / 2
    }

    /// Returns an epoch that was not used before.
    ///
    /// # Errors
    /// If the epoch is not reserved, or there are no more.
    pub fn advance(&mut self) -> Result<u32, EpochError> {
        match self.next {
            u32::MAX => Err(EpochError::Exhausted),
            next if next >= self.reserved => Err(EpochError::Unreserved),
            next => {
                self.next += 1;
                Ok(next)
            }
        }
    }

    /// Moves on so that the next epoch is greater than `floor`, which a peer has named.
    ///
    /// # Errors
    /// If the floor is too far ahead to be true.
    pub fn exceed(&mut self, floor: u32) -> Result<(), EpochError> {
        if floor >= self.ceiling {
            return Err(EpochError::TooFarAhead(floor));
        }
        self.next = self.next.max(floor + 1);
        Ok(())
    }
}

/// File of a daemon's epochs: its own next one, and the greatest that it has accepted of each peer.
#[derive(Debug)]
pub struct EpochFile {
    path: PathBuf,
}

/// Content of an [`EpochFile`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StoredEpochs {
    /// First epoch that may be used.
    pub own: u32,
    /// Key id of a peer's packets, and the greatest epoch accepted of it; in ascending order of key ids.
    pub floors: Vec<(u32, u32)>,
}

impl EpochFile {
    /// Names the file.
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// Reads the file; `None` if there is none.
    ///
    /// # Errors
    /// If the file cannot be read, or is damaged.
    pub fn read(&self) -> io::Result<Option<StoredEpochs>> {
        match fs::read_to_string(&self.path) {
            Ok(text) => StoredEpochs::parse(&text).map(Some).ok_or_else(|| {
                let message = "damaged: remove it, and peers are asked once to prove that their packets are new";
                io::Error::new(io::ErrorKind::InvalidData, format!("{}: {message}", self.path.display()))
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes the file: whole or not at all, and on disk when this returns.
    ///
    /// # Errors
    /// If the disk is full or the folder cannot be written.
    pub fn write(&self, epochs: &StoredEpochs) -> io::Result<()> {
        let beside = self.path.with_extension("partial");
        let mut file = fs::File::create(&beside)?;
        file.write_all(epochs.text().as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, &self.path)?;
        match self.path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => fs::File::open(folder)?.sync_all(),
            _ => Ok(()),
        }
    }
}

impl StoredEpochs {
    /// Floor of a peer of which the record was lost.
    const LOST: u32 = u32::MAX;

    /// Creates the content from the own bound, the floors of all peers, and stored ones of hosts that are no peers at
    /// present, by key id.
    pub fn with_floors(
        own: u32,
        present: impl Iterator<Item = (u32, Floor)>,
        absent: &std::collections::BTreeMap<u32, u32>,
    ) -> Self {
        let mut floors = absent.clone();
        floors.extend(present.map(|(id, floor)| (id, Self::number(floor))));
        Self { own, floors: floors.into_iter().collect() }
    }

    /// Returns a floor as it is stored.
    pub fn number(floor: Floor) -> u32 {
        match floor {
            Floor::Known(floor) => floor,
            Floor::Unknown => Self::LOST,
        }
    }
    /// Returns the floor that is stored as `number`.
    pub fn floor_of(number: u32) -> Floor {
        if number == Self::LOST { Floor::Unknown } else { Floor::Known(number) }
    }

    /// Returns the floor of the peer with this key id. A peer that the file does not have was never heard of.
    pub fn floor(&self, id: u32) -> Floor {
        let stored = self.floors.iter().find(|(known, _)| *known == id);
        stored.map_or(Floor::Known(0), |(_, number)| Self::floor_of(*number))
    }

    const TITLE: &str = "selvedge eqds epochs 1";
    /// Last line, so that a file that was cut is recognised.
    const END: &str = "end";

    fn text(&self) -> String {
        let mut text = format!("{}\nown {}\n", Self::TITLE, self.own);
        for (key, floor) in &self.floors {
            text += &format!("peer {key:08x} {floor}\n");
        }
        text + Self::END + "\n"
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.strip_suffix('\n')?.lines();
        if lines.next()? != Self::TITLE || lines.next_back()? != Self::END {
            return None;
        }
        let own = lines.next()?.strip_prefix("own ")?.parse().ok()?;
        let floor = |line: &str| {
            let (key, floor) = line.strip_prefix("peer ")?.split_once(' ')?;
            Some((u32::from_str_radix(key, 16).ok()?, floor.parse().ok()?))
        };
        Some(Self { own, floors: lines.map(floor).collect::<Option<_>>()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = BEGIN + 1_000_000;

    fn reserved(stored: Option<u32>, clock: u64) -> Epochs {
        let mut epochs = Epochs::new(stored, clock);
        epochs.stored(epochs.reserve());
        epochs
    }

    #[test]
    fn epochs_grow_over_restarts_whatever_is_lost() {
        let mut first = reserved(None, NOW);
        let used: Vec<u32> = (0..10).map(|_| first.advance().unwrap()).collect();
        assert!(used.is_sorted_by(|a, b| a < b));
        let last = used[9];
        let mut with_file = reserved(Some(first.reserved), NOW);
        assert!(with_file.advance().unwrap() > last, "the clock stood still");
        let mut with_clock = reserved(None, NOW + 10);
        assert!(with_clock.advance().unwrap() > last, "the file was lost");
        let mut clock_back = reserved(Some(first.reserved), 0);
        assert!(clock_back.advance().unwrap() > last, "the clock went back");
    }

    #[test]
    fn an_epoch_is_on_disk_before_it_is_used() {
        let mut epochs = Epochs::new(None, NOW);
        assert_eq!(epochs.advance(), Err(EpochError::Unreserved));
        let number = epochs.reserve();
        epochs.stored(number);
        let given = (0..1_000).map_while(|_| epochs.advance().ok()).last().unwrap();
        assert_eq!(given, number - 1);
        assert!(epochs.is_low());
    }

    #[test]
    fn a_peer_that_lies_about_its_floor_takes_no_epochs() {
        let mut epochs = reserved(None, NOW);
        let first = epochs.next;
        assert_eq!(epochs.exceed(first + 10), Ok(()));
        epochs.stored(epochs.reserve());
        assert_eq!(epochs.advance(), Ok(first + 11));
        assert_eq!(epochs.exceed(u32::MAX), Err(EpochError::TooFarAhead(u32::MAX)));
        assert!((0..1_000).all(|_| epochs.exceed(first + Epochs::AHEAD - 1).is_ok()));
        assert_eq!(epochs.next, first + Epochs::AHEAD, "nor does one that repeats itself");
    }

    #[test]
    fn files_are_read_whole_or_not_at_all() {
        let folder = std::env::temp_dir().join(format!("selvedge-epochs-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = EpochFile::new(&folder.join("epochs"));
        assert_eq!(file.read().unwrap(), None);
        let epochs = StoredEpochs { own: 7, floors: vec![(1, 2), (0xffff_ffff, 3)] };
        file.write(&epochs).unwrap();
        assert_eq!(file.read().unwrap(), Some(epochs.clone()));
        let text = epochs.text();
        for length in 0..text.len() {
            assert_eq!(StoredEpochs::parse(&text[..length]), None, "{length} bytes of it");
        }
        fs::write(folder.join("epochs"), "own 3").unwrap();
        assert_eq!(file.read().unwrap_err().kind(), io::ErrorKind::InvalidData);
        fs::remove_dir_all(&folder).unwrap();
    }
}
