//! Naive reference models: the definitions, written with sets, without a thought for speed.

mod irn_sender;
mod receiver;
mod tcp_receiver;

pub use irn_sender::IrnSender;
pub use receiver::Receiver;
pub use tcp_receiver::TcpReceiver;
