//! Figures of real programs: `program.toml` says which programs run, and each prints lines of JSON with what it has
//! measured. Claims about these numbers are checked as those about simulated ones; a run of a program takes the place
//! of a seed.
//!
//! ```toml
//! title = "Incast through EQDS tunnels"
//! runs = 5                                 # of each series, in turn
//! seconds = 40                             # about how long one run takes
//! needs = ["ip", "python3"]                # programs without which the figure is skipped
//! verbs = false                            # whether programs run by "selvedge verbs": its libraries are needed, too
//! apart = ["bytes"]                        # fields that tell lines of one name apart
//! [series]                                 # words; "selvedge" is this program, {hosts} a word of the case
//! eqds    = ["selvedge", "eqds", "lab", "--hosts", "{hosts}", "--", "./incast.py"]
//! without = ["selvedge", "eqds", "lab", "--hosts", "{hosts}", "--without", "--", "./incast.py"]
//! [cases]                                  # optional
//! "8 to 1"  = { hosts = "9" }
//! "32 to 1" = { hosts = "33" }
//! ```
//!
//! The programs run in the figure's folder. Their environment has `SELVEDGE`, the path of this program, and
//! `SELVEDGE_RUN`, the number of the run from 0, from which follows what is random in them: runs of equal number are
//! compared with each other. In short runs (`--smoke`), each runs once, with `SELVEDGE_SMOKE=1`.
//!
//! A line is an object: its field `figure` is a name, its numbers are metrics. The metric `incast.20000.p99_us` is the
//! field `p99_us` of lines with the figure "incast" and, as `apart` says, the bytes 20000. Other fields are for people.

mod parse;
mod printed;

pub use parse::{Command, Programs};
pub use printed::Printed;
