//! Table of inputs and the answers to them, as text that is committed beside a test.

use std::fmt::Write as _;

/// Longest line of an input that is shown in full, in characters.
const WIDEST: usize = 160;

/// Text of many small inputs, each followed by the answer of a parser or program: one block per input, with a blank
/// line after it. The lines of an input are marked with `+`, those of the answer are indented by four blanks.
///
/// A test compares [`Answers::text`] as a whole with a committed file (`expect_file!` of the crate `expect-test`).
#[derive(Debug, Default)]
pub struct Answers {
    bases: Vec<String>,
    text: String,
}

impl Answers {
    /// Creates an empty table. An input that begins or ends like one of `bases` is shown as a difference: the number of
    /// the first line that differs, the lines of the base from there to the common end with `-`, and those of the input
    /// with `+`.
    pub fn beside(bases: &[&str]) -> Self {
        Self { bases: bases.iter().map(|&base| base.to_owned()).collect(), text: String::new() }
    }
    /// Adds one block: `heading`, such as a command, unless it is empty; then the input, and the answer.
    ///
    /// Control characters and bytes that are not UTF-8 are escaped as in Rust. An input that does not end in a newline
    /// is marked. Long lines are cut and their length is given.
    pub fn add(&mut self, heading: &str, input: impl AsRef<[u8]>, answer: &str) {
        if !heading.is_empty() {
            self.line("", heading);
        }
        let input = shown(input.as_ref());
        let input: Vec<&str> = input.lines().collect();
        let bases = std::mem::take(&mut self.bases);
        let same = |base: &&String| common(&base.lines().collect::<Vec<_>>(), &input);
        let base = bases.iter().max_by_key(|base| {
            let (first, last) = same(base);
            first + last
        });
        let base: Vec<&str> = base.iter().flat_map(|base| base.lines()).collect();
        let (first, last) = common(&base, &input);
        if first + last > 0 {
            self.line("@ line ", &(first + 1).to_string());
            base[first..base.len() - last].iter().for_each(|line| self.line("- ", line));
        }
        input[first..input.len() - last].iter().for_each(|line| self.line("+ ", &cut(line)));
        answer.lines().for_each(|line| self.line("    ", line));
        self.text.push('\n');
        self.bases = bases;
    }
    /// Adds one block for a command that reads no input: the command as a shell would take it, and the answer.
    pub fn add_command(&mut self, command: &str, answer: &str) {
        self.line("", command);
        answer.lines().for_each(|line| self.line("    ", line));
        self.text.push('\n');
    }
    fn line(&mut self, mark: &str, line: &str) {
        self.text.push_str(format!("{mark}{line}").trim_end());
        self.text.push('\n');
    }
    /// Returns the table.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Returns a command as one would write it in a shell, behind a `$`.
pub fn command_line(program: &str, arguments: &[&str]) -> String {
    let mut line = format!("$ {program}");
    for argument in arguments {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=.,:/+@".contains(c);
        if !argument.is_empty() && argument.chars().all(is_plain) {
            write!(line, " {argument}").expect("writing to a string succeeds");
        } else {
            write!(line, " '{}'", argument.replace('\'', r"'\''")).expect("writing to a string succeeds");
        }
    }
    line
}

/// Returns the numbers of equal lines at the beginning and at the end of two texts, none of them counted twice.
fn common(a: &[&str], b: &[&str]) -> (usize, usize) {
    let first = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let last = a[first..].iter().rev().zip(b[first..].iter().rev()).take_while(|(a, b)| a == b).count();
    (first, last)
}

/// Returns an input with escapes, in lines.
fn shown(input: &[u8]) -> String {
    let mut text = String::new();
    for chunk in input.utf8_chunks() {
        for character in chunk.valid().chars() {
            if character.is_control() && character != '\n' {
                text.extend(character.escape_default());
            } else {
                text.push(character);
            }
        }
        chunk.invalid().iter().for_each(|byte| write!(text, "\\x{byte:02x}").expect("writing to a string succeeds"));
    }
    match input.last() {
        None => text.push_str("(empty)"),
        Some(b'\n') => {}
        Some(_) => text.push_str(" (no newline)"),
    }
    text
}

fn cut(line: &str) -> String {
    let length = line.chars().count();
    if length <= WIDEST {
        line.to_owned()
    } else {
        let first: String = line.chars().take(WIDEST / 2).collect();
        format!("{first}... ({length} characters)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_is_shown_by_what_differs_from_its_base() {
        let mut answers = Answers::beside(&["a = 1\nb = 2\n", "other\n"]);
        answers.add("", "a = 1\nb = 3\n", "f:2: b is 3");
        answers.add("$ read", "", "empty\nand so on");
        answers.add("", b"\xff\r\n\t", "bytes");
        answers.add("", "x".repeat(200) + "\n", "long");
        answers.add_command(&command_line("read", &["a.toml", "b c", ""]), "no file");
        let long =
            format!("+ {}... (200 characters)\n    long\n\n$ read a.toml 'b c' ''\n    no file\n\n", "x".repeat(80));
        let expected = format!(
            "@ line 2\n- b = 2\n+ b = 3\n    f:2: b is 3\n\n$ read\n+ (empty)\n    empty\n    and so on\n\n\
             + \\xff\\r\n+ \\t (no newline)\n    bytes\n\n{long}"
        );
        assert_eq!(answers.text(), expected);
    }
}
