//! State transitions of a queue pair, and the attributes that each requires (InfiniBand architecture, volume 1, section
//! 10.3.1 and table 96).

use super::attributes::{QpChange, QpState, Service};
use super::error::VerbsError;
use super::rnic::Limits;

/// Returns the state to which `change` leads from `state`, if the change is permitted.
pub(super) fn check(service: Service, state: QpState, change: &QpChange) -> Result<QpState, VerbsError> {
    use QpState::{Draining, Error, Initialised, ReadyToReceive, ReadyToSend, Reset, SendError};
    let from = change.from.unwrap_or(state);
    if from != state {
        return Err(VerbsError::Invalid("the queue pair is not in the state that it is said to be in"));
    }
    let to = change.state.unwrap_or(state);
    let (is_reliable, is_connected) = (service == Service::Reliable, service != Service::Datagram);
    let needs: &[(bool, &'static str)] = match (state, to) {
        (_, Reset | Error) => &[],
        (Reset, Initialised) => &[
            (change.pkey_index.is_some(), "a partition key index is needed to initialise"),
            (change.port.is_some(), "a port is needed to initialise"),
            (!is_connected || change.access.is_some(), "access rights are needed to initialise"),
            (is_connected || change.qkey.is_some(), "a Q_Key is needed to initialise"),
        ],
        (Initialised, ReadyToReceive) if is_connected => &[
            (change.route.is_some(), "the way to the other side is needed to receive"),
            (change.mtu.is_some(), "a path MTU is needed to receive"),
            (change.destination.is_some(), "the other side's queue pair is needed to receive"),
            (change.receive_psn.is_some(), "the first PSN to expect is needed to receive"),
            (!is_reliable || change.reads_answered.is_some(), "the number of Reads to answer is needed to receive"),
            (!is_reliable || change.not_ready_timer.is_some(), "an RNR timer is needed to receive"),
        ],
        (ReadyToReceive, ReadyToSend) if is_reliable => &[
            (change.send_psn.is_some(), "the first PSN to send is needed to send"),
            (change.timeout.is_some(), "a timeout is needed to send"),
            (change.retries.is_some(), "a retry count is needed to send"),
            (change.not_ready_retries.is_some(), "an RNR retry count is needed to send"),
            (change.reads_asked.is_some(), "the number of Reads to ask for is needed to send"),
        ],
        (ReadyToReceive, ReadyToSend) => &[(change.send_psn.is_some(), "the first PSN to send is needed to send")],
        (Initialised, Initialised | ReadyToReceive)
        | (ReadyToSend, ReadyToSend | Draining)
        | (Draining, ReadyToSend | Draining)
        | (SendError, ReadyToSend) => &[],
        _ => return Err(VerbsError::Invalid("a queue pair cannot go from the one state to the other")),
    };
    if let Some(&(_, missing)) = needs.iter().find(|(given, _)| !given) {
        return Err(VerbsError::Invalid(missing));
    }
    fixed(state, to, change)?;
    values(change)?;
    Ok(to)
}

/// Rejects changes of attributes that packets in flight may depend on.
fn fixed(state: QpState, to: QpState, change: &QpChange) -> Result<(), VerbsError> {
    use QpState::{Draining, Initialised, ReadyToReceive, ReadyToSend, Reset};
    if matches!(state, Reset | Initialised) || to == Reset {
        return Ok(());
    }
    let begins_to_send = (state, to) == (ReadyToReceive, ReadyToSend);
    let has_drained = (state, to) == (Draining, Draining);
    let checks = [
        (change.mtu.is_none(), "a path MTU is set before the queue pair receives"),
        (change.destination.is_none(), "the other side's queue pair is set before this one receives"),
        (change.receive_psn.is_none(), "the first PSN to expect is set before the queue pair receives"),
        (
            change.send_psn.is_none() || begins_to_send,
            "the first PSN to send is set when the queue pair begins to send",
        ),
        (
            change.route.is_none() || has_drained,
            "the way to the other side changes only while the send queue is drained",
        ),
    ];
    match checks.into_iter().find(|(good, _)| !good) {
        Some((_, wrong)) => Err(VerbsError::Invalid(wrong)),
        None => Ok(()),
    }
}

/// Rejects values that are out of range.
fn values(change: &QpChange) -> Result<(), VerbsError> {
    let at_most = |value: Option<u8>, most: u8| value.is_none_or(|value| value <= most);
    let checks = [
        (change.mtu.is_none_or(|mtu| matches!(mtu, 256 | 512 | 1024 | 2048 | 4096)), "a path MTU of 256 to 4096"),
        (change.port.is_none_or(|port| port == 1), "there is one port, 1"),
        (change.pkey_index.is_none_or(|index| index == 0), "there is one partition key, at index 0"),
        (at_most(change.reads_asked, Limits::HERE.reads), "more Reads at a time than this NIC can have under way"),
        (at_most(change.reads_answered, Limits::HERE.reads), "more Reads at a time than this NIC can have under way"),
        (at_most(change.timeout, 31), "a timeout code is at most 31"),
        (at_most(change.retries, 7), "a retry count is at most 7"),
        (at_most(change.not_ready_retries, 7), "an RNR retry count is at most 7"),
        (at_most(change.not_ready_timer, 31), "an RNR timer code is at most 31"),
        (change.destination.is_none_or(|qp| qp.0 < 1 << 24), "a queue pair number has 24 bits"),
        (
            change.route.is_none_or(|route| !route.remote.is_unspecified() && !route.local.is_unspecified()),
            "RoCE needs a global route: give a GID (in many programs -g INDEX)",
        ),
    ];
    match checks.into_iter().find(|(good, _)| !good) {
        Some((_, wrong)) => Err(VerbsError::Invalid(wrong)),
        None => Ok(()),
    }
}

/// Merges the attributes of `change` into `set`.
pub(super) fn merge(set: &mut QpChange, change: &QpChange) {
    macro_rules! take {
        ($($field:ident)*) => { $(if change.$field.is_some() { set.$field = change.$field; })* };
    }
    take!(access qkey route destination mtu send_psn receive_psn reads_asked reads_answered timeout retries);
    take!(not_ready_retries not_ready_timer drained_event pkey_index port);
}
