//! Programs of one process that call the exported functions as C does: by their names, with raw pointers. `cargo xtask
//! deep` runs them with AddressSanitizer, which sees into this library here.

mod c;
mod connections;
mod files;
mod requests;
mod sockets;
