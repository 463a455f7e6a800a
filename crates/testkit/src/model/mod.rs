//! Simple reference models: the definitions, implemented with sets, without regard to speed.

mod irn_sender;
mod receiver;
mod tcp_receiver;

pub use irn_sender::IrnSender;
pub use receiver::Receiver;
pub use tcp_receiver::TcpReceiver;
