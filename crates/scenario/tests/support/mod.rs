//! Treatment of a scenario file, shared by the fuzz target and the tests.

use std::path::Path;

use selvedge_scenario::{Changes, Plan};

/// Reads and checks any bytes as a scenario. The files that it names are not there.
pub(crate) fn read_scenario(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let read = Plan::from_text("fuzz", &text, Path::new("/nonexistent/fuzz"), &Changes::default());
    if let Err(error) = read {
        assert!(!error.to_string().trim().is_empty());
    }
}
