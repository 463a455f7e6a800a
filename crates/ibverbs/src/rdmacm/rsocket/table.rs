//! The sockets of a process: by the descriptor that programs call them by, and by a name that is never given twice, by
//! which events find them.

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

/// The sockets of this process: a child of a fork has none of its parent's, and leaves them alone.
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

/// A name for a new socket.
pub(super) fn fresh_name() -> usize {
    let mut table = table();
    table.next += 1;
    table.next
}

/// Events find this socket from now on, and with a number programs do.
pub(super) fn insert(socket: &Arc<Socket>, number: Option<c_int>) {
    let mut table = table();
    table.names.insert(socket.name(), Arc::downgrade(socket));
    let before = number.and_then(|number| table.numbers.insert(number, Arc::clone(socket)));
    drop(table);
    // The program closed its descriptor by another way: the socket goes without the lock, as each does.
    drop(before);
}

/// The socket that programs call so.
///
/// # Errors
/// `EBADF`.
pub(super) fn find(number: c_int) -> Result<Arc<Socket>, c_int> {
    table().numbers.get(&number).cloned().ok_or(libc::EBADF)
}

/// The socket that an event is about.
pub(super) fn named(name: usize) -> Option<Arc<Socket>> {
    table().names.get(&name).and_then(Weak::upgrade)
}

/// Programs do not find it any more.
///
/// # Errors
/// `EBADF`.
pub(super) fn remove(number: c_int) -> Result<Arc<Socket>, c_int> {
    table().numbers.remove(&number).ok_or(libc::EBADF)
}

/// A socket is gone.
pub(super) fn forget(name: usize) {
    table().names.remove(&name);
}

/// All that there are.
pub(super) fn all() -> Vec<Arc<Socket>> {
    table().names.values().filter_map(Weak::upgrade).collect()
}
