//! Operations on sets of flags, the same for every version of the headers.

/// Implements the operations of a set of flags for a type that holds their bits, `struct Name(u8)`, and has `NONE`.
macro_rules! set_of_flags {
    ($name:ident) => {
        impl $name {
            /// Returns the union of both sets of flags.
            #[inline]
            pub const fn with(self, others: Self) -> Self {
                Self(self.0 | others.0)
            }
            /// Returns the flags that are not in `others`.
            #[inline]
            pub const fn without(self, others: Self) -> Self {
                Self(self.0 & !others.0)
            }
            /// Returns these flags if `condition` holds, else none.
            #[inline]
            pub const fn when(self, condition: bool) -> Self {
                if condition { self } else { Self::NONE }
            }
            /// Returns whether any flag of `of` is set.
            #[inline]
            pub const fn any(self, of: Self) -> bool {
                self.0 & of.0 != 0
            }
            /// Returns the bits.
            pub const fn bits(self) -> u8 {
                self.0
            }
            /// Creates flags from bits.
            pub const fn from_bits(bits: u8) -> Self {
                Self(bits)
            }
        }
    };
}

pub(super) use set_of_flags;
