//! Dotted paths to keys: `switch.pfc.headroom`, `loss[0].chance`.

use std::fmt;

/// Steps from the root of a text to one of its values. Elements of arrays are steps too, written as numbers.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct KeyPath(Vec<String>);

impl KeyPath {
    /// Reads `a.b[0].c`; `a.b.0.c` means the same. `None` if a step is empty.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim().replace('[', ".").replace(']', "");
        let steps: Vec<String> = text.split('.').map(|step| step.trim().to_owned()).collect();
        steps.iter().all(|step| !step.is_empty()).then_some(Self(steps))
    }
    /// Returns the path of the whole text.
    pub fn root() -> Self {
        Self::default()
    }
    /// Returns the steps.
    pub fn steps(&self) -> &[String] {
        &self.0
    }
    /// Returns this path with one step appended.
    pub fn join(&self, step: impl Into<String>) -> Self {
        let mut steps = self.0.clone();
        steps.push(step.into());
        Self(steps)
    }
    /// Returns whether `self` leads to `other` or to something that contains it.
    pub fn contains(&self, other: &Self) -> bool {
        other.0.starts_with(&self.0)
    }
}

impl fmt::Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.0.iter().enumerate() {
            if step.bytes().all(|b| b.is_ascii_digit()) {
                write!(f, "[{step}]")?;
            } else if at > 0 {
                write!(f, ".{step}")?;
            } else {
                f.write_str(step)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_read_and_write() {
        for text in ["switch.pfc.headroom", "loss[0].chance", "title"] {
            assert_eq!(KeyPath::parse(text).expect("a path").to_string(), text);
        }
        assert_eq!(KeyPath::parse("loss.0.chance"), KeyPath::parse("loss[0].chance"));
        assert_eq!(KeyPath::parse("a..b"), None);
        assert_eq!(KeyPath::parse(""), None);
    }

    #[test]
    fn a_path_contains_what_lies_below_it() {
        let path = |text| KeyPath::parse(text).expect("a path");
        assert!(path("switch.pfc").contains(&path("switch.pfc.headroom")));
        assert!(path("switch.pfc").contains(&path("switch.pfc")));
        assert!(!path("switch.pfc").contains(&path("switch.pfcx")));
        assert!(KeyPath::root().contains(&path("title")));
    }
}
