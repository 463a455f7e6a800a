//! One of the two processes of a trial.

use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use selvedge_dataplane::trial::Peer;

use super::exchange::{Hello, Said, Setup, hear, say};

/// Performs one end's part of a trial, as instructed on standard input; reports on standard output.
///
/// # Errors
/// Returns an error if standard output is closed.
pub fn serve() -> io::Result<()> {
    let mut input = BufReader::new(io::stdin());
    let mut output = BufWriter::new(io::stdout());
    let outcome = take_part(&mut input, &mut output);
    outcome.or_else(|error| say(&mut output, &Said::Failed(error.to_string())))
}

fn take_part(input: &mut (impl BufRead + Send), output: &mut impl Write) -> io::Result<()> {
    let setup: Setup = hear(input)?;
    let mut peer = Peer::open(&setup.terms())?;
    say(output, &Said::Hello(peer.address().into()))?;
    let other: Hello = hear(input)?;
    peer.connect(&other.into())?;
    say(output, &Said::Ready)?;
    // Wait until the other end is ready, too.
    let _: bool = hear(input)?;
    if setup.messages.is_empty() {
        let is_over = Arc::new(AtomicBool::new(false));
        thread::scope(|scope| {
            let (flag, answering) = (Arc::clone(&is_over), &mut peer);
            scope.spawn(move || {
                // Wait for the next line, or the end of the input.
                let _ = hear::<bool>(input);
                flag.store(true, Ordering::Relaxed);
            });
            answering.answer(|| is_over.load(Ordering::Relaxed))
        })?;
    } else {
        let mut all = Vec::new();
        peer.ask(&setup.messages(), |done| all.push(done))?;
        all.into_iter().try_for_each(|done| say(output, &Said::from(done)))?;
    }
    say(output, &Said::End(peer.stats()?.into()))
}
