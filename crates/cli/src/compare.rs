//! Command `selvedge compare`.

use selvedge_study::Contrast;

use crate::args::CompareArgs;
use crate::output::{Failure, has_color, print, width};

pub(crate) fn compare(args: &CompareArgs) -> Result<(), Failure> {
    let contrast = Contrast::of([&args.a, &args.b])?;
    if args.json {
        return print(&contrast.to_json());
    }
    print(&contrast.render(width(), has_color()))
}
