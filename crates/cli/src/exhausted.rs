//! End of the process, with a message, when the system refuses memory.

use std::alloc::Layout;
use std::io::{self, Write};
use std::process;
use std::sync::OnceLock;

/// Advice at the end of the out-of-memory message.
static REMEDY: OnceLock<String> = OnceLock::new();

/// Sets the advice that the out-of-memory message ends with; the first call counts.
pub(crate) fn advise(remedy: String) {
    // With several studies in one command, the first call sets the advice.
    let _ = REMEDY.set(remedy);
}

/// Reports on standard error that `wanted` bytes were refused, and ends the process with status 1. Allocates nothing.
pub(crate) fn end(wanted: Layout) -> ! {
    let remedy = REMEDY.get().map_or("give it more, or less to do", String::as_str);
    // A failure to write cannot be reported anywhere.
    let _ =
        writeln!(io::stderr().lock(), "\nerror: out of memory: the system refused {} bytes; {remedy}", wanted.size());
    process::exit(1)
}
