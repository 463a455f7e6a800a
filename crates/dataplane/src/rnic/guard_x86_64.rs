//! Memory accesses that return an error where the processor would raise a fault.
//!
//! Each function below has one instruction that may fault, between two labels. The handler moves the thread behind that
//! instruction; the function then returns a value other than zero, because nothing cleared it.

use std::arch::global_asm;
use std::ptr;
use std::sync::Once;

use selvedge_nic::verbs::Fault;

global_asm!(
    ".text",
    ".balign 16",
    // Visible to this crate alone.
    ".globl selvedge_guarded_copy",
    ".hidden selvedge_guarded_copy",
    ".globl selvedge_copy_fault",
    ".hidden selvedge_copy_fault",
    ".globl selvedge_copy_resume",
    ".hidden selvedge_copy_resume",
    ".globl selvedge_guarded_touch",
    ".hidden selvedge_guarded_touch",
    ".globl selvedge_touch_fault",
    ".hidden selvedge_touch_fault",
    ".globl selvedge_touch_resume",
    ".hidden selvedge_touch_resume",
    ".globl selvedge_guarded_add",
    ".hidden selvedge_guarded_add",
    ".globl selvedge_add_fault",
    ".hidden selvedge_add_fault",
    ".globl selvedge_add_resume",
    ".hidden selvedge_add_resume",
    ".globl selvedge_guarded_swap",
    ".hidden selvedge_guarded_swap",
    ".globl selvedge_swap_fault",
    ".hidden selvedge_swap_fault",
    ".globl selvedge_swap_resume",
    ".hidden selvedge_swap_resume",
    // (rdi: to, rsi: from, rdx: length) -> bytes not copied
    "selvedge_guarded_copy:",
    "mov rcx, rdx",
    "selvedge_copy_fault: rep movsb",
    "selvedge_copy_resume: mov rax, rcx",
    "ret",
    // (rdi: at) -> 0, or 1 after a fault
    "selvedge_guarded_touch:",
    "mov eax, 1",
    "xor ecx, ecx",
    "selvedge_touch_fault: lock or byte ptr [rdi], cl",
    "xor eax, eax",
    "selvedge_touch_resume: ret",
    // (rdi: at, rsi: add, rdx: place for the old value) -> 0, or 1 after a fault
    "selvedge_guarded_add:",
    "mov eax, 1",
    "selvedge_add_fault: lock xadd qword ptr [rdi], rsi",
    "mov qword ptr [rdx], rsi",
    "xor eax, eax",
    "selvedge_add_resume: ret",
    // (rdi: at, rsi: compare, rdx: swap, rcx: place for the old value) -> 0, or 1 after a fault
    "selvedge_guarded_swap:",
    "mov r8d, 1",
    "mov rax, rsi",
    "selvedge_swap_fault: lock cmpxchg qword ptr [rdi], rdx",
    "mov qword ptr [rcx], rax",
    "xor r8d, r8d",
    "selvedge_swap_resume: mov eax, r8d",
    "ret",
);

unsafe extern "C" {
    fn selvedge_guarded_copy(to: *mut u8, from: *const u8, length: usize) -> usize;
    fn selvedge_guarded_touch(at: *mut u8) -> u32;
    fn selvedge_guarded_add(at: *mut u64, add: u64, was: *mut u64) -> u32;
    fn selvedge_guarded_swap(at: *mut u64, compare: u64, swap: u64, was: *mut u64) -> u32;
    static selvedge_copy_fault: u8;
    static selvedge_copy_resume: u8;
    static selvedge_touch_fault: u8;
    static selvedge_touch_resume: u8;
    static selvedge_add_fault: u8;
    static selvedge_add_resume: u8;
    static selvedge_swap_fault: u8;
    static selvedge_swap_resume: u8;
}

fn outcome(left: u32) -> Result<(), Fault> {
    if left == 0 { Ok(()) } else { Err(Fault) }
}

pub(super) unsafe fn copy(to: *mut u8, from: *const u8, length: usize) -> Result<(), Fault> {
    // SAFETY: the caller's, but for faults.
    outcome(u32::from(unsafe { selvedge_guarded_copy(to, from, length) } != 0))
}

pub(super) unsafe fn touch(at: *mut u8) -> Result<(), Fault> {
    // SAFETY: the caller's, but for faults.
    outcome(unsafe { selvedge_guarded_touch(at) })
}

pub(super) unsafe fn fetch_add(at: *mut u64, add: u64) -> Result<u64, Fault> {
    let mut was = 0;
    // SAFETY: the caller's, but for faults.
    outcome(unsafe { selvedge_guarded_add(at, add, &raw mut was) }).map(|()| was)
}

pub(super) unsafe fn compare_swap(at: *mut u64, compare: u64, swap: u64) -> Result<u64, Fault> {
    let mut was = 0;
    // SAFETY: the caller's, but for faults.
    outcome(unsafe { selvedge_guarded_swap(at, compare, swap, &raw mut was) }).map(|()| was)
}

static INSTALLED: Once = Once::new();
/// The handlers of SIGSEGV and SIGBUS that were installed before.
static mut BEFORE: [Option<libc::sigaction>; 2] = [None; 2];
const SIGNALS: [libc::c_int; 2] = [libc::SIGSEGV, libc::SIGBUS];

pub(in super::super) const IS_GUARDED: bool = true;

/// Installs the handlers, once per process.
pub(in super::super) fn install() {
    INSTALLED.call_once(|| {
        for (at, signal) in SIGNALS.into_iter().enumerate() {
            // SAFETY: plain old data, filled in before use; BEFORE is written before the handler can run.
            unsafe {
                let mut before: libc::sigaction = std::mem::zeroed();
                libc::sigaction(signal, ptr::null(), &raw mut before);
                BEFORE[at] = Some(before);
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = handle as *const () as usize;
                action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
                libc::sigaction(signal, &raw const action, ptr::null_mut());
            }
        }
    });
}

/// Handles SIGSEGV and SIGBUS. Only compares and stores: it may run at any instruction.
extern "C" fn handle(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel hands over a ucontext_t; labels are only compared, never read.
    unsafe {
        let registers = &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs;
        let at = &mut registers[libc::REG_RIP as usize];
        let guarded = [
            (&raw const selvedge_copy_fault, &raw const selvedge_copy_resume),
            (&raw const selvedge_touch_fault, &raw const selvedge_touch_resume),
            (&raw const selvedge_add_fault, &raw const selvedge_add_resume),
            (&raw const selvedge_swap_fault, &raw const selvedge_swap_resume),
        ];
        for (fault, resume) in guarded {
            if *at == fault as i64 {
                *at = resume as i64;
                return;
            }
        }
        pass_on(signal, info, context);
    }
}

/// Passes a fault elsewhere to the earlier handler, or to the kernel, by returning to the faulting instruction with the
/// default handler installed.
unsafe fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: BEFORE is not written once handlers are installed; the old handler has the signature that its flags say.
    unsafe {
        let before = SIGNALS.iter().position(|&known| known == signal).and_then(|at| BEFORE[at]);
        match before {
            Some(old) if old.sa_sigaction != libc::SIG_DFL && old.sa_sigaction != libc::SIG_IGN => {
                if old.sa_flags & libc::SA_SIGINFO != 0 {
                    let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) =
                        std::mem::transmute(old.sa_sigaction);
                    handler(signal, info, context);
                } else {
                    let handler: extern "C" fn(libc::c_int) = std::mem::transmute(old.sa_sigaction);
                    handler(signal);
                }
            }
            _ => {
                libc::signal(signal, libc::SIG_DFL);
            }
        }
    }
}
