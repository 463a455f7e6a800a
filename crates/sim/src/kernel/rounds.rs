//! Windows: how partitions run side by side and still agree on everything.
//!
//! A descriptor that a node sends in a [window](WindowSchedule) arrives in a later one, so all partitions may run a
//! window without synchronisation. Then they exchange what they sent, and the next window begins. Windows depend on
//! the fabric alone, not on how it is cut: one partition has the same windows, so everything that happens *between*
//! windows (samples, failures, the end) is the same, too.
//!
//! Where windows overlap, some nodes are ahead of the others. An event that concerns the whole fabric at one time cuts
//! both windows short that contain that time; both continue from there. Where there is no such event, two windows are a
//! pair: nothing happens between them, so that one partition may run both at once
//! ([`VisitOrder`](crate::kernel::visit_order::VisitOrder)).

use std::sync::{Mutex, MutexGuard, OnceLock};

use selvedge_units::Instant;

use super::nodes::{Exchange, Nodes};
use super::worker_pool::WorkerPool;

/// Distribution of one run over processors and time. Results do not depend on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parallel {
    /// Number of threads; at least 1.
    pub threads: usize,
    /// Number of partitions that the fabric is cut into; at least 1. More partitions than threads can pay through
    /// locality.
    pub partitions: usize,
    /// Number of events: a window after one with fewer is left to one thread, because waking the others would take
    /// longer.
    pub shared_from: u64,
    /// Whether neighbours take turns where every link leads from one half of the nodes to the other, which halves the
    /// number of visits. A run without an end time then ends up to a link's delay later, with the same flows.
    pub in_turns: bool,
}

impl Parallel {
    /// Returns a setup with `threads` threads and one partition for each.
    pub fn on(threads: usize) -> Self {
        Self { threads, partitions: threads, ..Self::default() }
    }
}

impl Default for Parallel {
    fn default() -> Self {
        // Three barriers take less time than this many events, but more where processors have other work.
        Self { threads: 1, partitions: 1, shared_from: 400, in_turns: true }
    }
}

/// Part of a run between windows, on one thread with access to all partitions.
pub(crate) trait Conductor {
    /// Returns the next round: which window comes next, and how far it goes; `None` when the run is over.
    fn between_windows(&mut self) -> Option<Round>;
}

/// Runs rounds on as many threads as `parallel` says, until the conductor ends.
///
/// A step between windows is thread 0's alone; a window has two phases: run, and exchange.
pub(crate) fn drive<N: Nodes>(partitions: &[Mutex<N>], parallel: Parallel, conductor: &mut impl Conductor) {
    let count = partitions.len();
    let threads = parallel.threads.clamp(1, count);
    if threads == 1 {
        while let Some(round) = conductor.between_windows() {
            run_alone(partitions, round);
        }
        return;
    }

    let worker_pool: OnceLock<WorkerPool> = OnceLock::new();
    let next = Mutex::new(Round::default());
    // `mailboxes[to]` holds what all partitions sent to partition `to`.
    let mailboxes: Vec<Mutex<N::Outbox>> = (0..count).map(|_| Mutex::default()).collect();
    let mut leader = Leader { partitions, conductor, handled: 0 };
    let work = |thread: usize, worker_pool: &WorkerPool, mut leader: Option<&mut Leader<'_, N, _>>| {
        let mine = || (thread..count).step_by(worker_pool.threads());
        loop {
            let look = leader.as_mut().map(|leader| {
                || match leader.next_shared_round(parallel.shared_from) {
                    Some(round) => {
                        *lock(&next) = round;
                        true
                    }
                    None => false,
                }
            });
            if !worker_pool.leader_decides(look) {
                return;
            }
            let round = *lock(&next);
            for slice in round.slices() {
                let run = |index: usize| {
                    lock(&partitions[index]).run_shared(slice, |to, outbox| lock(&mailboxes[to]).append(outbox));
                };
                worker_pool.phase(|| mine().for_each(run));
                worker_pool
                    .phase(|| mine().for_each(|index| lock(&partitions[index]).deliver(&mut lock(&mailboxes[index]))));
            }
        }
    };
    std::thread::scope(|scope| {
        let mut hired = 1;
        for thread in 1..threads {
            let (work, worker_pool) = (&work, &worker_pool);
            let begin = move || work(thread, worker_pool.wait(), None);
            // If the system refuses further threads, the run has fewer.
            if std::thread::Builder::new().spawn_scoped(scope, begin).is_err() {
                break;
            }
            hired += 1;
        }
        work(0, worker_pool.get_or_init(|| WorkerPool::new(hired)), Some(&mut leader));
    });
    worker_pool.into_inner().into_iter().for_each(WorkerPool::finish);
}

/// The thread that conducts, where there are several.
struct Leader<'a, N, C> {
    partitions: &'a [Mutex<N>],
    conductor: &'a mut C,
    /// Number of events before the last window.
    handled: u64,
}

impl<N: Nodes, C: Conductor> Leader<'_, N, C> {
    /// Runs windows on this thread as long as they have few events. Returns the next round, which all threads are to
    /// run; `None` when the run is over.
    fn next_shared_round(&mut self, shared_from: u64) -> Option<Round> {
        loop {
            let round = self.conductor.between_windows()?;
            let handled = self.partitions.iter().map(|partition| lock(partition).events()).sum();
            let fresh = handled - std::mem::replace(&mut self.handled, handled);
            if fresh >= shared_from {
                return Some(round);
            }
            run_alone(self.partitions, round);
        }
    }
}

/// Window, or the part of one between `begin` and `end`. Everything that its nodes could handle earlier is done.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct WindowSlice {
    pub(crate) window: u64,
    pub(crate) begin: Instant,
    pub(crate) end: Instant,
}

/// Windows to run until the whole fabric is considered again: a window or a part of one, and the other window of its
/// pair, if it has one.
#[derive(Clone, Copy, Default)]
pub(crate) struct Round {
    pub(crate) first: WindowSlice,
    pub(crate) second: Option<WindowSlice>,
}

impl Round {
    fn slices(self) -> impl Iterator<Item = WindowSlice> {
        [Some(self.first), self.second].into_iter().flatten()
    }
}

/// Locks a mutex that no other thread holds: barriers hand partitions from phase to phase.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Runs a round on one thread.
fn run_alone<N: Nodes>(partitions: &[Mutex<N>], round: Round) {
    if let ([partition], Round { first, second: Some(second) }) = (partitions, round) {
        return lock(partition).run_pair([first, second]);
    }
    for slice in round.slices() {
        partitions.iter().for_each(|partition| lock(partition).run_window(slice));
        exchange(partitions);
    }
}

/// Delivers what all partitions sent to each other, on one thread.
pub(crate) fn exchange<N: Nodes>(partitions: &[Mutex<N>]) {
    if partitions.len() == 1 {
        return;
    }
    for from in partitions {
        lock(from).pack();
        for (to, partition) in partitions.iter().enumerate() {
            let mut outbox = std::mem::take(&mut lock(from).outboxes()[to]);
            lock(partition).deliver(&mut outbox);
            lock(from).outboxes()[to] = outbox; // keeps its memory
        }
    }
}
