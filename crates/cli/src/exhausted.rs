//! What happens when the system has no memory left.

use std::alloc::Layout;
use std::io::{self, Write};
use std::process;
use std::sync::OnceLock;

/// What to do then, as far as it is known.
static REMEDY: OnceLock<String> = OnceLock::new();

/// From now on, this is what is said when memory is used up.
pub(crate) fn advise(remedy: String) {
    // Of several studies the first counts: they are asked for by one command.
    let _ = REMEDY.set(remedy);
}

/// Says so and ends the process with status 1. Allocates nothing.
pub(crate) fn end(wanted: Layout) -> ! {
    let remedy = REMEDY.get().map_or("give it more, or less to do", String::as_str);
    // What cannot be written cannot be told.
    let _ =
        writeln!(io::stderr().lock(), "\nerror: out of memory: the system refused {} bytes; {remedy}", wanted.size());
    process::exit(1)
}
