//! Files that a user names, read as a whole up to a limit.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Maximum number of bytes taken from a pipe or a device, which may have no end.
const MOST_PIPED: u64 = 1 << 30;

/// Returns the content of the file at `path`. More than a gigabyte is read of regular files alone, which have an end.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_piped(path, MOST_PIPED)
}

/// Returns the content of the file at `path`; an error if a pipe gives more than `most` bytes.
fn read_piped(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let mut content = Vec::new();
    if file.metadata()?.is_file() {
        (&file).read_to_end(&mut content)?;
        return Ok(content);
    }
    file.take(most + 1).read_to_end(&mut content)?;
    if content.len() as u64 > most {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "there is no end to it after 1 GiB; give a file"));
    }
    Ok(content)
}

/// Returns the text in the file at `path`, limited to a gigabyte unless it is a regular file.
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path)?).map_err(|_| io::ErrorKind::InvalidData.into())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_is_given_up() {
        assert_eq!(read_piped(Path::new("/dev/zero"), 9_000).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert!(read_piped(Path::new("/dev/null"), 0).unwrap().is_empty());
        assert!(read_text(Path::new("src/input.rs")).unwrap().starts_with("//! Files"));
    }
}
