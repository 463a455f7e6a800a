//! The functions that this library stands before: those of the C library.

/// Returns the next function of a name in the order of libraries.
macro_rules! next {
    ($name:ident: fn($($kind:ty),* $(,)?) -> $told:ty) => {{
        use std::sync::atomic::{AtomicPtr, Ordering};
        static FOUND: AtomicPtr<libc::c_void> = AtomicPtr::new(std::ptr::null_mut());
        let mut function = FOUND.load(Ordering::Relaxed);
        if function.is_null() {
            let name = concat!(stringify!($name), "\0");
            #[allow(unused_unsafe, reason = "the macro is used in unsafe blocks, too")]
            // SAFETY: the name ends with a zero.
            let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr().cast()) };
            if found.is_null() {
                std::process::abort();
            }
            function = found;
            FOUND.store(function, Ordering::Relaxed);
        }
        #[allow(unused_unsafe, reason = "the macro is used in unsafe blocks, too")]
        // SAFETY: the C library declares the function with these types.
        let function = unsafe { std::mem::transmute::<*mut libc::c_void, unsafe extern "C" fn($($kind),*) -> $told>(function) };
        function
    }};
}
pub(crate) use next;

/// Returns the error of the last function of the C library.
pub(crate) fn errno() -> i32 {
    // SAFETY: the C library returns the place of this thread's errno.
    unsafe { *libc::__errno_location() }
}

/// Sets the error that the program sees; returns -1.
pub(crate) fn fail<T: From<i8>>(errno: i32) -> T {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
    T::from(-1)
}
