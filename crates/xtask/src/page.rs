//! Documents with a part that a chore writes.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// Mark at the end of the written part.
const END: &str = "<!-- end -->\n";

/// Writes the text that `cargo xtask CHORE --write` has produced into a document.
///
/// # Errors
/// Returns an error if the document has no marks for the text, or cannot be read or written.
pub(crate) fn write(file: &Path, chore: &str, text: &str) -> Result<()> {
    let name = file.display();
    let page = fs::read_to_string(file).with_context(|| format!("cannot read {name}"))?;
    let page =
        replaced(&page, chore, text).with_context(|| format!("{name} has no marks around the text of {chore}"))?;
    fs::write(file, page).with_context(|| format!("cannot write {name}"))
}

/// Returns the page with `text` in place of the part between the marks.
fn replaced(page: &str, chore: &str, text: &str) -> Option<String> {
    let begin = format!("<!-- cargo xtask {chore} --write -->\n");
    let (before, rest) = page.split_once(&begin)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{begin}\n{text}\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_replaced_and_the_rest_stays() {
        let page = "above\n<!-- cargo xtask chore --write -->\nold\n<!-- end -->\nbelow\n";
        let once = replaced(page, "chore", "new\n").unwrap();
        assert_eq!(once, "above\n<!-- cargo xtask chore --write -->\n\nnew\n\n<!-- end -->\nbelow\n");
        assert_eq!(replaced(&once, "chore", "new\n").unwrap(), once);
        assert!(replaced("nothing", "chore", "new").is_none() && replaced(page, "other", "new").is_none());
    }
}
