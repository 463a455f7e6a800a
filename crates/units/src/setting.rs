//! Settings that may be left to the scenario.

/// A value, or the word "auto" (derived from the scenario: path, rates, other settings), or the
/// word "off".
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Setting<T> {
    /// Derived from the rest of the scenario. The resolved scenario shows the value.
    #[default]
    Auto,
    /// Disabled.
    Off,
    /// An explicit value.
    Value(T),
}

impl<T> Setting<T> {
    /// Returns the value, or that of `auto()` for [`Setting::Auto`]. `None` when off.
    pub fn resolve(self, auto: impl FnOnce() -> Option<T>) -> Option<T> {
        match self {
            Self::Auto => auto(),
            Self::Off => None,
            Self::Value(value) => Some(value),
        }
    }
}

impl<T> From<Option<T>> for Setting<T> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Off, Self::Value)
    }
}

/// Yes, no, or left to the scenario: `true`, `false` or "auto".
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Toggle {
    /// Derived from the rest of the scenario. The resolved scenario shows the choice.
    #[default]
    Auto,
    /// Yes.
    On,
    /// No.
    Off,
}

impl Toggle {
    /// Returns whether the toggle is on; `auto()` decides for [`Toggle::Auto`].
    pub fn resolve(self, auto: impl FnOnce() -> bool) -> bool {
        match self {
            Self::Auto => auto(),
            Self::On => true,
            Self::Off => false,
        }
    }
}

impl From<bool> for Toggle {
    fn from(on: bool) -> Self {
        if on { Self::On } else { Self::Off }
    }
}

#[cfg(feature = "config")]
mod config {
    use super::{Setting, Toggle};
    use alloc::borrow::Cow;
    use core::fmt;
    use core::marker::PhantomData;
    use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
    use serde::de::{Deserialize, Deserializer, Error, IntoDeserializer, Visitor};
    use serde::ser::{Serialize, Serializer};

    impl<'de, T: Deserialize<'de>> Deserialize<'de> for Setting<T> {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            struct Any<T>(PhantomData<T>);
            impl<'de, T: Deserialize<'de>> Visitor<'de> for Any<T> {
                type Value = Setting<T>;
                fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str("\"auto\", \"off\" or a value")
                }
                fn visit_str<E: Error>(self, text: &str) -> Result<Setting<T>, E> {
                    match text {
                        "auto" => Ok(Setting::Auto),
                        "off" => Ok(Setting::Off),
                        _ => T::deserialize(text.into_deserializer())
                            .map(Setting::Value)
                            .map_err(|e: E| E::custom(alloc::format!("{e} (\"auto\" and \"off\" are allowed too)"))),
                    }
                }
                fn visit_u64<E: Error>(self, n: u64) -> Result<Setting<T>, E> {
                    T::deserialize(n.into_deserializer()).map(Setting::Value)
                }
                fn visit_i64<E: Error>(self, n: i64) -> Result<Setting<T>, E> {
                    T::deserialize(n.into_deserializer()).map(Setting::Value)
                }
                fn visit_f64<E: Error>(self, n: f64) -> Result<Setting<T>, E> {
                    T::deserialize(n.into_deserializer()).map(Setting::Value)
                }
            }
            from.deserialize_any(Any(PhantomData))
        }
    }
    impl<T: Serialize> Serialize for Setting<T> {
        fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
            match self {
                Self::Auto => to.serialize_str("auto"),
                Self::Off => to.serialize_str("off"),
                Self::Value(value) => value.serialize(to),
            }
        }
    }
    impl<T: JsonSchema> JsonSchema for Setting<T> {
        fn schema_name() -> Cow<'static, str> {
            alloc::format!("{}OrAuto", T::schema_name()).into()
        }
        fn json_schema(generator: &mut SchemaGenerator) -> Schema {
            let value = generator.subschema_for::<T>();
            json_schema!({ "anyOf": [{ "enum": ["auto", "off"] }, value] })
        }
    }

    impl<'de> Deserialize<'de> for Toggle {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            struct Any;
            impl Visitor<'_> for Any {
                type Value = Toggle;
                fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str("true, false or \"auto\"")
                }
                fn visit_bool<E: Error>(self, on: bool) -> Result<Toggle, E> {
                    Ok(on.into())
                }
                fn visit_str<E: Error>(self, text: &str) -> Result<Toggle, E> {
                    match text {
                        "auto" => Ok(Toggle::Auto),
                        _ => Err(E::custom(alloc::format!("\"{text}\": expected true, false or \"auto\""))),
                    }
                }
            }
            from.deserialize_any(Any)
        }
    }
    impl Serialize for Toggle {
        fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
            match self {
                Self::Auto => to.serialize_str("auto"),
                Self::On => to.serialize_bool(true),
                Self::Off => to.serialize_bool(false),
            }
        }
    }
    impl JsonSchema for Toggle {
        fn schema_name() -> Cow<'static, str> {
            "Toggle".into()
        }
        fn json_schema(_: &mut SchemaGenerator) -> Schema {
            json_schema!({ "anyOf": [{ "const": "auto" }, { "type": "boolean" }] })
        }
    }
}
