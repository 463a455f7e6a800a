//! The sockets of a process: by the descriptor that programs use, and by a unique name that is never reused, which
//! events use.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::socket::Socket;

struct Table {
    process: u32,
    numbers: BTreeMap<c_int, Arc<Socket>>,
    names: BTreeMap<usize, Weak<Socket>>,
    next: usize,
}

static TABLE: Mutex<Table> =
    Mutex::new(Table { process: 0, numbers: BTreeMap::new(), names: BTreeMap::new(), next: 1 });

/// Returns the sockets of this process: a forked child has none of its parent's, and does not touch them.
fn table() -> MutexGuard<'static, Table> {
    let mut table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if table.process != process {
        std::mem::forget(std::mem::take(&mut table.numbers));
        std::mem::forget(std::mem::take(&mut table.names));
        table.process = process;
    }
    table
}

/// Returns a name for a new socket.
pub(super) fn fresh_name() -> usize {
    let mut table = table();
    table.next += 1;
    table.next
}

/// Adds a socket: events find it by its name from now on, and programs by `number`, if it has one.
pub(super) fn insert(socket: &Arc<Socket>, number: Option<c_int>) {
    let mut table = table();
    table.names.insert(socket.name(), Arc::downgrade(socket));
    let before = number.and_then(|number| table.numbers.insert(number, Arc::clone(socket)));
    drop(table);
    // The program closed that descriptor by another way. The old socket is dropped without the lock, like every socket.
    drop(before);
}

/// Returns the socket with a descriptor's number.
///
/// # Errors
/// Returns `EBADF` if there is none.
pub(super) fn find(number: c_int) -> Result<Arc<Socket>, c_int> {
    table().numbers.get(&number).cloned().ok_or(libc::EBADF)
}

/// Returns the socket that an event names.
pub(super) fn named(name: usize) -> Option<Arc<Socket>> {
    table().names.get(&name).and_then(Weak::upgrade)
}

/// Removes and returns the socket with a descriptor's number; programs do not find it any more.
///
/// # Errors
/// Returns `EBADF` if there is none.
pub(super) fn remove(number: c_int) -> Result<Arc<Socket>, c_int> {
    table().numbers.remove(&number).ok_or(libc::EBADF)
}

/// Removes the name of a dropped socket.
pub(super) fn forget(name: usize) {
    table().names.remove(&name);
}

/// Returns all sockets.
pub(super) fn all() -> Vec<Arc<Socket>> {
    table().names.values().filter_map(Weak::upgrade).collect()
}
