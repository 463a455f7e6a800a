//! Lists of two.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};

/// Two values from a list. Serde's own arrays ignore a third one, and TOML does not report it.
pub(crate) struct Two<T>(pub(crate) [T; 2]);

/// Deserializes the two values of a list, for fields that are arrays.
pub(crate) fn two<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<[T; 2], D::Error> {
    Two::deserialize(from).map(|Two(values)| values)
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Two<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct List<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for List<T> {
            type Value = Two<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of two")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Two<T>, A::Error> {
                let mut found = Vec::new();
                while let Some(value) = seq.next_element()? {
                    found.push(value);
                }
                let two = found.try_into().map(Two);
                two.map_err(|found: Vec<T>| {
                    A::Error::custom(format!("found a list of {}, expected a list of two", found.len()))
                })
            }
        }
        from.deserialize_seq(List(PhantomData))
    }
}
