//! Command `selvedge open`.

use selvedge_study::Viewer;

use crate::args::OpenArgs;
use crate::output::{Failure, print, say};

pub(crate) fn open(args: &OpenArgs) -> Result<(), Failure> {
    let viewer = Viewer::open(&args.results, args.port)?;
    print(&format!("{}\n", viewer.url()))?;
    say("open this address in a browser; Ctrl-C ends");
    viewer.serve();
    Ok(())
}
