//! Virtual-time pairs, impairments, reference models, folders, small input files, tables of answers and fuzzed
//! bytes, for tests.
//!
//! A test states a [`Transfer`] and what must come out of it ([`Outcome`]); a [`World`] carries it
//! out. [`Pair`] is the world in which time costs nothing; the data plane's tests bring another.
#![forbid(unsafe_code)]

mod answers;
mod impair;
pub mod model;
mod pair;
mod scratch;
mod script;
mod tcp_pair;
pub mod texts;
mod world;

pub use answers::{Answers, command_line};
pub use impair::{Fate, Impairment, Odds};
pub use pair::{Link, Pair};
pub use scratch::Scratch;
pub use script::Script;
pub use tcp_pair::{TcpOutcome, TcpPair, TcpTransfer};
pub use world::{Outcome, Placed, Transfer, World};
