//! TOML files that people write: the place of each key, and errors that name file, line and key.
//!
//! [`Document`] reads a text into a type that a JSON Schema describes, and remembers where each key was written. The
//! crate knows no particular file format.
#![forbid(unsafe_code)]

mod document;
mod error;
mod path;
mod route;

pub use document::{Document, Mismatch, unknown_name};
pub use error::{DocumentError, Place};
pub use path::KeyPath;
pub use route::{Step, View, follow, resolved, route, views, wants_table};
