//! Options of a socket, which `rsetsockopt` sets and `rgetsockopt` returns.

use std::ffi::c_int;
use std::time::Duration;

use super::stream::Sizes;

/// Level of the options that only these sockets have.
pub(super) const SOL_RDMA: c_int = 0x10000;
const RDMA_SQSIZE: c_int = 0;
const RDMA_RQSIZE: c_int = 1;
const RDMA_INLINE: c_int = 2;
const RDMA_IOMAPSIZE: c_int = 3;
const RDMA_ROUTE: c_int = 4;

/// Default number of requests in each queue, which is rdma-core's like [`BUFFER`] (bytes of each buffer) and [`INLINE`]
/// (bytes of inline data).
const QUEUE: u16 = 384;
const BUFFER: u32 = 1 << 17;
const INLINE: u16 = 64;
/// Most requests in a queue.
const LARGEST_QUEUE: c_int = 0xfffe;
/// Default idle time of keep-alive messages in seconds, which is Linux's.
const KEEPALIVE: c_int = 7_200;

/// Options of a socket.
#[derive(Clone, Debug)]
pub(super) struct Options {
    pub(super) family: c_int,
    /// File status flags, as set by `F_SETFL`: `O_NONBLOCK` and others.
    pub(super) status_flags: c_int,
    pub(super) descriptor_flags: c_int,
    pub(super) sizes: Sizes,
    inline: u16,
    maps: c_int,
    reuses_address: bool,
    pub(super) keeps_alive: bool,
    keepalive_s: c_int,
    out_of_band_inline: bool,
    /// Longest time that closing waits in seconds; `None` for no limit.
    pub(super) linger_s: Option<c_int>,
    pub(super) receive_timeout: Option<Duration>,
    pub(super) send_timeout: Option<Duration>,
    service: c_int,
    no_delay: bool,
    only_v6: bool,
}

/// Action that the socket takes once an option is set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Effect {
    Nothing,
    /// Sets whether the identifier shares its port.
    Reuse(bool),
    /// Sets the identifier's type of service.
    Service(u8),
    /// Starts, changes or stops keep-alive messages.
    KeepAlive,
}

/// Value of an option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Value {
    Number(c_int),
    /// `SO_LINGER`: whether it is on, and its seconds.
    Linger(bool, c_int),
    Time(Option<Duration>),
    /// An option that is not in this table: the socket may know it.
    Unknown,
}

impl Options {
    pub(super) fn new(family: c_int) -> Self {
        let sizes = Sizes { send_queue: QUEUE, receive_queue: QUEUE, send_buffer: BUFFER, receive_buffer: BUFFER };
        Self {
            family,
            status_flags: libc::O_RDWR,
            descriptor_flags: 0,
            sizes,
            inline: INLINE,
            maps: 0,
            reuses_address: false,
            keeps_alive: false,
            keepalive_s: KEEPALIVE,
            out_of_band_inline: false,
            linger_s: None,
            receive_timeout: None,
            send_timeout: None,
            service: 0,
            no_delay: false,
            only_v6: false,
        }
    }

    /// Returns the options of a connection accepted by a listener with these options. Like in Linux, the connection
    /// blocks.
    pub(super) fn inherited(&self) -> Self {
        let status_flags = self.status_flags & !libc::O_NONBLOCK;
        Self { status_flags, descriptor_flags: 0, ..self.clone() }
    }

    /// Returns the effects to apply to a new identifier.
    pub(super) fn effects(&self) -> [Effect; 2] {
        [Effect::Reuse(self.reuses_address), Effect::Service((self.service & 0xff) as u8)]
    }

    pub(super) fn is_nonblocking(&self) -> bool {
        self.status_flags & libc::O_NONBLOCK != 0
    }
    /// Returns the time between keep-alive messages; `None` if they are off.
    pub(super) fn keepalive(&self) -> Option<Duration> {
        self.keeps_alive.then(|| Duration::from_secs(self.keepalive_s.unsigned_abs().into()))
    }

    /// Sets an option. Sizes take effect until the socket is connected; those of the queues are refused afterwards.
    ///
    /// # Errors
    /// Returns `EINVAL` for a value that is too short or out of range, `EOPNOTSUPP` for an option that does not exist
    /// here.
    pub(super) fn set(&mut self, level: c_int, name: c_int, value: &[u8], is_connected: bool) -> Result<Effect, c_int> {
        let number = value.first_chunk().map(|bytes| c_int::from_ne_bytes(*bytes)).ok_or(libc::EINVAL);
        // The kernel doubles requested sizes, and so do these sockets. The size is rounded to an even number, for two
        // halves.
        let buffer = |number: c_int| {
            let doubled = u32::try_from(number).unwrap_or(0).saturating_mul(2);
            doubled.clamp(*Sizes::BUFFERS.start(), *Sizes::BUFFERS.end()) & !1
        };
        let queue = |number: c_int| number.clamp(0, LARGEST_QUEUE) as u16;
        match (level, name) {
            (libc::SOL_SOCKET, libc::SO_REUSEADDR) => {
                self.reuses_address = number? != 0;
                return Ok(Effect::Reuse(self.reuses_address));
            }
            (libc::SOL_SOCKET, libc::SO_RCVBUF) => self.sizes.receive_buffer = buffer(number?),
            (libc::SOL_SOCKET, libc::SO_SNDBUF) => self.sizes.send_buffer = buffer(number?),
            (libc::SOL_SOCKET, libc::SO_LINGER) => {
                let seconds = value.get(4..).and_then(|rest| rest.first_chunk()).ok_or(libc::EINVAL)?;
                self.linger_s = (number? != 0).then_some(c_int::from_ne_bytes(*seconds).max(0));
            }
            (libc::SOL_SOCKET, libc::SO_KEEPALIVE) => {
                self.keeps_alive = number? != 0;
                return Ok(Effect::KeepAlive);
            }
            (libc::SOL_SOCKET, libc::SO_OOBINLINE) => self.out_of_band_inline = number? != 0,
            (libc::SOL_SOCKET, libc::SO_RCVTIMEO) => self.receive_timeout = time(value)?,
            (libc::SOL_SOCKET, libc::SO_SNDTIMEO) => self.send_timeout = time(value)?,
            // Options about addresses, interfaces and signals have no effect on these sockets.
            (libc::SOL_SOCKET, libc::SO_REUSEPORT | libc::SO_BROADCAST | libc::SO_PRIORITY) => _ = number?,
            (libc::IPPROTO_IP, libc::IP_TOS) | (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                self.service = number?;
                return Ok(Effect::Service((self.service & 0xff) as u8));
            }
            (libc::IPPROTO_IPV6, libc::IPV6_V6ONLY) => self.only_v6 = number? != 0,
            (libc::IPPROTO_TCP, libc::TCP_NODELAY) => self.no_delay = number? != 0,
            (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE) => {
                let seconds = number?;
                if seconds <= 0 {
                    return Err(libc::EINVAL);
                }
                self.keepalive_s = seconds;
                return Ok(Effect::KeepAlive);
            }
            // Options of TCP's own mechanisms have no effect.
            (
                libc::IPPROTO_TCP,
                libc::TCP_MAXSEG
                | libc::TCP_CONGESTION
                | libc::TCP_KEEPCNT
                | libc::TCP_KEEPINTVL
                | libc::TCP_QUICKACK
                | libc::TCP_CORK
                | libc::TCP_USER_TIMEOUT,
            ) => {}
            (SOL_RDMA, RDMA_SQSIZE | RDMA_RQSIZE | RDMA_INLINE | RDMA_IOMAPSIZE | RDMA_ROUTE) if is_connected => {
                return Err(libc::EINVAL);
            }
            (SOL_RDMA, RDMA_SQSIZE) => self.sizes.send_queue = queue(number?),
            (SOL_RDMA, RDMA_RQSIZE) => self.sizes.receive_queue = queue(number?),
            (SOL_RDMA, RDMA_INLINE) => self.inline = queue(number?),
            (SOL_RDMA, RDMA_IOMAPSIZE) => self.maps = number?.clamp(0, c_int::from(u16::MAX)),
            // There is only one path to each address.
            (SOL_RDMA, RDMA_ROUTE) => {}
            _ => return Err(libc::EOPNOTSUPP),
        }
        Ok(Effect::Nothing)
    }

    /// Returns the value of an option.
    pub(super) fn get(&self, level: c_int, name: c_int) -> Value {
        let flag = |is_set: bool| Value::Number(is_set.into());
        match (level, name) {
            (libc::SOL_SOCKET, libc::SO_REUSEADDR) => flag(self.reuses_address),
            (libc::SOL_SOCKET, libc::SO_KEEPALIVE) => flag(self.keeps_alive),
            (libc::SOL_SOCKET, libc::SO_OOBINLINE) => flag(self.out_of_band_inline),
            (libc::SOL_SOCKET, libc::SO_RCVBUF) => Value::Number(self.sizes.receive_buffer as c_int),
            (libc::SOL_SOCKET, libc::SO_SNDBUF) => Value::Number(self.sizes.send_buffer as c_int),
            (libc::SOL_SOCKET, libc::SO_LINGER) => Value::Linger(self.linger_s.is_some(), self.linger_s.unwrap_or(0)),
            (libc::SOL_SOCKET, libc::SO_RCVTIMEO) => Value::Time(self.receive_timeout),
            (libc::SOL_SOCKET, libc::SO_SNDTIMEO) => Value::Time(self.send_timeout),
            (libc::SOL_SOCKET, libc::SO_TYPE) => Value::Number(libc::SOCK_STREAM),
            (libc::SOL_SOCKET, libc::SO_DOMAIN) => Value::Number(self.family),
            (libc::SOL_SOCKET, libc::SO_PROTOCOL) => Value::Number(libc::IPPROTO_TCP),
            (libc::SOL_SOCKET, libc::SO_BROADCAST | libc::SO_REUSEPORT | libc::SO_PRIORITY) => Value::Number(0),
            (libc::IPPROTO_IP, libc::IP_TOS) | (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => Value::Number(self.service),
            (libc::IPPROTO_IPV6, libc::IPV6_V6ONLY) => flag(self.only_v6),
            (libc::IPPROTO_TCP, libc::TCP_NODELAY) => flag(self.no_delay),
            (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE) => Value::Number(self.keepalive_s),
            (libc::IPPROTO_TCP, libc::TCP_KEEPCNT | libc::TCP_KEEPINTVL) => Value::Number(1),
            (SOL_RDMA, RDMA_SQSIZE) => Value::Number(self.sizes.send_queue.into()),
            (SOL_RDMA, RDMA_RQSIZE) => Value::Number(self.sizes.receive_queue.into()),
            (SOL_RDMA, RDMA_INLINE) => Value::Number(self.inline.into()),
            (SOL_RDMA, RDMA_IOMAPSIZE) => Value::Number(self.maps),
            _ => Value::Unknown,
        }
    }
}

/// Reads a `struct timeval`; 0 means no limit.
fn time(value: &[u8]) -> Result<Option<Duration>, c_int> {
    let long = |at: usize| value.get(at..).and_then(|rest| rest.first_chunk()).map(|bytes| i64::from_ne_bytes(*bytes));
    let (Some(seconds), Some(us)) = (long(0), long(8)) else { return Err(libc::EINVAL) };
    if !(0..1_000_000).contains(&us) {
        return Err(libc::EDOM);
    }
    let time = Duration::from_secs(seconds.max(0) as u64) + Duration::from_micros(us as u64);
    Ok((!time.is_zero()).then_some(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_doubled_even_and_within_limits() {
        let mut options = Options::new(libc::AF_INET);
        for (asked, got) in [(0, 4_096), (-1, 4_096), (4_099, 8_198), (c_int::MAX, 1 << 28)] {
            let set = options.set(libc::SOL_SOCKET, libc::SO_RCVBUF, &c_int::to_ne_bytes(asked), false);
            assert_eq!(set, Ok(Effect::Nothing));
            assert_eq!(options.get(libc::SOL_SOCKET, libc::SO_RCVBUF), Value::Number(got), "{asked}");
        }
    }

    #[test]
    fn values_that_are_too_short_are_refused() {
        let mut options = Options::new(libc::AF_INET);
        for (level, name, length) in [
            (libc::SOL_SOCKET, libc::SO_RCVBUF, 3),
            (libc::SOL_SOCKET, libc::SO_LINGER, 7),
            (libc::SOL_SOCKET, libc::SO_RCVTIMEO, 15),
            (SOL_RDMA, RDMA_SQSIZE, 0),
        ] {
            assert_eq!(options.set(level, name, &vec![1; length], false), Err(libc::EINVAL), "{level} {name}");
        }
    }

    #[test]
    fn queues_keep_their_sizes_once_connected() {
        let mut options = Options::new(libc::AF_INET);
        assert_eq!(options.set(SOL_RDMA, RDMA_RQSIZE, &c_int::to_ne_bytes(100_000), false), Ok(Effect::Nothing));
        assert_eq!(options.get(SOL_RDMA, RDMA_RQSIZE), Value::Number(0xfffe));
        assert_eq!(options.set(SOL_RDMA, RDMA_RQSIZE, &c_int::to_ne_bytes(16), true), Err(libc::EINVAL));
    }

    #[test]
    fn what_is_accepted_blocks_and_has_the_listeners_buffers() {
        let mut options = Options::new(libc::AF_INET);
        options.status_flags |= libc::O_NONBLOCK;
        options
            .set(libc::SOL_SOCKET, libc::SO_SNDBUF, &c_int::to_ne_bytes(50_000), false)
            .expect("SO_SNDBUF is supported");
        let accepted = options.inherited();
        assert!(!accepted.is_nonblocking());
        assert_eq!(accepted.sizes.send_buffer, 100_000);
    }
}
