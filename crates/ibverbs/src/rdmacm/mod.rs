//! `librdmacm.so.1`: connections by address and port. Its functions are defined here under other names
//! (`selvedge_rdma_*`), next to the NIC that they use; `librdmacm.so.1` only calls them (see `cargo xtask dist`).

mod abi;
mod address;
mod connect;
mod ece;
mod endpoint;
mod event;
mod id;
mod multicast;
mod pair;
mod port;
mod rsocket;

pub use abi::LAYOUTS;
