//! Identifiers: small integers of distinct types.

use core::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $letter:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub u32);

        impl $name {
            /// Returns the position in a table of such items.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($letter, "{}"), self.0)
            }
        }
    };
}

id!(
    /// A host (an end point with one NIC), numbered from 0.
    HostId, "h"
);
id!(
    /// A switch, numbered from 0.
    SwitchId, "s"
);
id!(
    /// One end of a link: a port of a host or of a switch, numbered from 0 over the whole fabric.
    PortId, "p"
);
id!(
    /// A queue pair number, unique within its host for as long as the host runs (modulo 2^32).
    QpNumber, "qp"
);
