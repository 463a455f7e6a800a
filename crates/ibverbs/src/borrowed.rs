//! Pointers between C and this library, as types of parameters and results.
//!
//! 1. A program makes a value of these types by calling an exported function. The type is the parameter's contract,
//!    which verbs.h and the manual pages state in words; the compiler holds this library to it from there on. A pointer
//!    that may be null is an `Option`.
//! 2. No value is a Rust reference: C may free what it points to during the call, and other threads may use it.
//! 3. Fields of objects that C reads and writes are in a [`Shared`]: other threads of the program may change them while
//!    a reference to the object exists. They are loaded and stored one at a time, by [`load`] and [`store`].
//! 4. A null pointer where the contract permits none stops the program at the first access, as in other libraries.

use std::cell::UnsafeCell;
use std::ffi::{CStr, c_char};
use std::marker::PhantomData;
use std::mem::{self, MaybeUninit};
use std::ops::{Deref, DerefMut};
use std::ptr::{self, NonNull};

/// A pointer to a value that the function reads: the attributes of a request, or an object of this library.
///
/// Contract: the pointer is aligned and not null. Until the function returns, or frees the object itself, a `T` is
/// there, and nobody changes it, except through cells. Numbers that the request does not use may be uninitialised.
#[repr(transparent)]
pub struct Borrowed<'c, T>(NonNull<T>, PhantomData<&'c T>);

impl<T> Clone for Borrowed<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Borrowed<'_, T> {}

impl<'c, T> Borrowed<'c, T> {
    /// Returns the pointer as a parameter would be; `None` if it is null.
    ///
    /// # Safety
    /// The pointer is null, or fulfils the contract of [`Borrowed`] for the lifetime `'c`.
    pub(crate) unsafe fn new(pointer: *mut T) -> Option<Self> {
        NonNull::new(pointer).map(|pointer| Self(pointer, PhantomData))
    }
    /// Returns a pointer to a value that is borrowed for `'c`.
    pub(crate) fn of(value: &'c T) -> Self {
        Self(NonNull::from_ref(value), PhantomData)
    }
    /// Returns the value, for as long as the contract permits.
    pub(crate) fn get(self) -> &'c T {
        // SAFETY: by the contract, a `T` is there for `'c`, and changes through cells alone.
        unsafe { self.0.as_ref() }
    }
    pub(crate) fn as_ptr(self) -> *mut T {
        self.0.as_ptr()
    }
}

impl<T> Deref for Borrowed<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.get()
    }
}

/// A pointer to a value that the function reads and changes.
///
/// Contract: the pointer is aligned and not null; a `T` is there until the function returns, and nobody else uses it
/// meanwhile.
#[repr(transparent)]
pub struct Exclusive<'c, T>(NonNull<T>, PhantomData<&'c mut T>);

impl<'c, T> Exclusive<'c, T> {
    /// Returns a pointer to a value that is borrowed for `'c`.
    pub(crate) fn of(value: &'c mut T) -> Self {
        Self(NonNull::from_mut(value), PhantomData)
    }
}

impl<T> Deref for Exclusive<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: by the contract, a `T` is there, and this is the only pointer in use.
        unsafe { self.0.as_ref() }
    }
}

impl<T> DerefMut for Exclusive<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: by the contract, a `T` is there, and this is the only pointer in use.
        unsafe { self.0.as_mut() }
    }
}

/// A pointer to room for a value that the function writes.
///
/// Contract: the pointer is aligned and not null; there is room for a `T`, initialised or not, until the function
/// returns, and nobody else uses it meanwhile.
#[repr(transparent)]
pub struct Out<'c, T>(NonNull<T>, PhantomData<&'c mut MaybeUninit<T>>);

impl<T> Out<'_, T> {
    /// Writes the value. A previous value is not dropped: in C nothing is.
    pub(crate) fn write(&mut self, value: T) {
        // SAFETY: by the contract, there is room.
        unsafe { self.0.as_ptr().write(value) }
    }
}

/// An object of this library that a program owns: the result of a function that creates one, the parameter of a
/// function that destroys it.
///
/// Contract: the pointer is from this library, as a `Given<T>`; the object was not destroyed, and while it is being
/// destroyed nobody else uses it. An object whose `Given` is dropped stays with the program.
#[repr(transparent)]
pub struct Given<T>(NonNull<T>);

impl<T> Given<T> {
    /// Moves an object to the heap, for a program to own.
    pub(crate) fn new(object: T) -> Self {
        Self::from(Box::new(object))
    }
    /// Returns the pointer as a parameter would be; `None` if it is null.
    ///
    /// # Safety
    /// The pointer is null, or fulfils the contract of [`Given`].
    pub(crate) unsafe fn from_c(pointer: *mut T) -> Option<Self> {
        NonNull::new(pointer).map(Self)
    }
    pub(crate) fn borrow(&self) -> Borrowed<'_, T> {
        Borrowed(self.0, PhantomData)
    }
    pub(crate) fn as_ptr(&self) -> *mut T {
        self.0.as_ptr()
    }
    /// Destroys the object and frees its memory.
    pub(crate) fn free(self) {
        // SAFETY: every `Given` comes from a box, and by the contract this is the last pointer in use.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

impl<T> From<Box<T>> for Given<T> {
    fn from(object: Box<T>) -> Self {
        let object = NonNull::from_mut(Box::leak(object));
        // Programs give the pointer back, and events name objects by their addresses.
        let _ = object.as_ptr().expose_provenance();
        Self(object)
    }
}

impl<T> std::fmt::Debug for Given<T> {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(to)
    }
}

impl<T> Deref for Given<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: by the contract, the object was not destroyed; programs change it through cells alone.
        unsafe { self.0.as_ref() }
    }
}

/// A pointer from an object to another one that outlives it, by the rules of verbs.h: programs destroy what depends on
/// an object before the object.
pub(crate) struct Link<T>(NonNull<T>);

impl<T> Link<T> {
    /// Creates a link to an object.
    ///
    /// # Safety
    /// The holder of the link is destroyed before the object, by the rules of verbs.h.
    pub(crate) unsafe fn to(object: Borrowed<'_, T>) -> Self {
        Self(object.0)
    }
    pub(crate) fn get(&self) -> Borrowed<'_, T> {
        Borrowed(self.0, PhantomData)
    }
}

/// A part of an object whose fields C reads and writes, at any time and from any thread. Programs order accesses to one
/// field, by the rules of verbs.h.
#[repr(transparent)]
pub struct Shared<T>(UnsafeCell<T>);

impl<T> Shared<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }
    /// Returns the address, for [`load`] and [`store`], and for C.
    pub(crate) const fn as_ptr(&self) -> *mut T {
        self.0.get()
    }
    /// Returns a copy of all fields.
    pub(crate) fn copied(&self) -> T
    where
        T: Copy,
    {
        // SAFETY: the fields are there, in a cell; programs order the accesses to them.
        unsafe { copy_of(self.as_ptr()) }
    }
    /// Returns the value before C knows of it.
    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
}

/// Reads a field.
///
/// # Safety
/// A valid `T` is there, and nobody writes it meanwhile.
pub(crate) unsafe fn copy_of<T: Copy>(field: *const T) -> T {
    // SAFETY: as the caller promises.
    unsafe { field.read() }
}

/// Loads a field of a [`Shared`].
macro_rules! load {
    ($shared:expr, $($field:ident).+) => {{
        let shared: &$crate::borrowed::Shared<_> = &$shared;
        // SAFETY: the field is there, in a cell; programs order the accesses to one field.
        unsafe { $crate::borrowed::copy_of(&raw const (*shared.as_ptr()).$($field).+) }
    }};
}
pub(crate) use load;

/// Stores a value in a field of a [`Shared`].
macro_rules! store {
    ($shared:expr, $($field:ident).+ = $value:expr) => {{
        let (shared, value): (&$crate::borrowed::Shared<_>, _) = (&$shared, $value);
        // SAFETY: the field is there, in a cell; programs order the accesses to one field.
        unsafe { (&raw mut (*shared.as_ptr()).$($field).+).write(value) }
    }};
}
pub(crate) use store;

/// A structure with a pointer to the next of a list.
///
/// # Safety
/// Whoever passes a pointer to one such structure promises [`Borrowed`]'s contract for all that follow; null ends the
/// list.
pub unsafe trait Linked: Sized {
    /// Returns the pointer to the next structure.
    fn next(&self) -> *mut Self;
}

/// The structures of a linked list, from the first.
pub(crate) struct List<'c, T>(pub(crate) Option<Borrowed<'c, T>>);

impl<'c, T: Linked> Iterator for List<'c, T> {
    type Item = Borrowed<'c, T>;

    fn next(&mut self) -> Option<Self::Item> {
        let here = self.0?;
        // SAFETY: by the contract of `Linked`, for the lifetime of the first.
        self.0 = unsafe { Borrowed::new(Linked::next(here.get())) };
        Some(here)
    }
}

/// Returns C's array as a slice; `None` if it is null and not empty.
///
/// # Safety
/// The array is null, or has `count` elements, which nobody changes during `'c`.
pub(crate) unsafe fn elements<'c, T>(first: *const T, count: usize) -> Option<&'c [T]> {
    match count {
        0 => Some(&[]),
        _ if first.is_null() => None,
        // SAFETY: the caller's; the array is not null and not empty.
        _ => Some(unsafe { std::slice::from_raw_parts(first, count) }),
    }
}

/// Returns a list for C to free by its address alone; null if there is no memory.
pub(crate) fn allocated<T: Copy>(list: &[T]) -> *mut T {
    // SAFETY: `calloc` returns null, or room for so many elements, which are new.
    unsafe {
        let to = libc::calloc(list.len(), size_of::<T>()).cast::<T>();
        if !to.is_null() {
            ptr::copy_nonoverlapping(list.as_ptr(), to, list.len());
        }
        to
    }
}

/// A C string as a parameter.
///
/// Contract: the pointer is null, or a string is there that ends with a zero and that nobody changes until the function
/// returns.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Text<'c>(*const c_char, PhantomData<&'c CStr>);

impl<'c> Text<'c> {
    /// Returns the pointer as a parameter would be.
    ///
    /// # Safety
    /// The pointer fulfils the contract of [`Text`] for the lifetime `'c`.
    pub(crate) unsafe fn new(pointer: *const c_char) -> Self {
        Self(pointer, PhantomData)
    }
    pub(crate) fn of(text: &'c CStr) -> Self {
        Self(text.as_ptr(), PhantomData)
    }
    /// Returns the string; `None` if it is null.
    pub(crate) fn get(self) -> Option<&'c CStr> {
        // SAFETY: by the contract, a string is there for `'c`.
        if self.0.is_null() { None } else { Some(unsafe { CStr::from_ptr(self.0) }) }
    }
    pub(crate) fn as_ptr(self) -> *const c_char {
        self.0
    }
}

/// A pointer that this library hands on to the C library's function in whose place a program calls this library's.
///
/// Contract: the one of the parameter in the C library's function, until the function returns. Code that reads or
/// writes there itself says by which part of that contract.
#[repr(transparent)]
pub struct Passed<T>(*mut T);

impl<T> Clone for Passed<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Passed<T> {}

impl<T> Passed<T> {
    /// Returns a null pointer, for parameters that may be null.
    pub(crate) const fn null() -> Self {
        Self(ptr::null_mut())
    }
    /// Returns the pointer as a parameter would be.
    ///
    /// # Safety
    /// The pointer fulfils the contract of the parameter that it is for.
    pub(crate) const unsafe fn new(pointer: *mut T) -> Self {
        Self(pointer)
    }
    pub(crate) fn as_ptr(self) -> *mut T {
        self.0
    }
}

/// A structure of C for which zeros are a value: numbers, null pointers, missing functions.
///
/// # Safety
/// Every field has a value of which all bytes are zero.
pub unsafe trait Zeroable: Sized {}

/// Returns a structure of zeros.
pub(crate) fn zeroed<T: Zeroable>() -> T {
    // SAFETY: by the contract of `Zeroable`.
    unsafe { mem::zeroed() }
}

macro_rules! zeroable {
    ($($name:ty),*) => {$(
        // SAFETY: numbers and null pointers.
        unsafe impl Zeroable for $name {}
    )*};
}

zeroable!(libc::sockaddr_storage, libc::sockaddr_in, libc::sockaddr_in6, libc::addrinfo, libc::stat);

#[cfg(test)]
mod tests {
    use super::*;

    struct Element {
        value: u32,
        next: *mut Element,
    }

    // SAFETY: the list of the test is whole.
    unsafe impl Linked for Element {
        fn next(&self) -> *mut Self {
            self.next
        }
    }

    #[test]
    fn a_list_ends_where_its_pointer_is_null() {
        let mut last = Element { value: 2, next: ptr::null_mut() };
        let first = Element { value: 1, next: &raw mut last };
        let values: Vec<u32> = List(Some(Borrowed::of(&first))).map(|element| element.value).collect();
        assert_eq!(values, [1, 2]);
        assert_eq!(List::<Element>(None).count(), 0);
    }

    #[test]
    fn pointers_of_c_are_as_large_as_pointers_and_null_is_none() {
        assert_eq!(size_of::<Option<Borrowed<'_, u8>>>(), size_of::<*mut u8>());
        assert_eq!(size_of::<Option<Given<u8>>>(), size_of::<*mut u8>());
        // SAFETY: a null pointer fulfils both contracts.
        let (borrowed, given) = unsafe { (Borrowed::<u8>::new(ptr::null_mut()), Given::<u8>::from_c(ptr::null_mut())) };
        assert!(borrowed.is_none() && given.is_none());
    }

    #[test]
    fn a_field_that_c_changes_is_loaded_anew() {
        let shared = Shared::new(libc::pollfd { fd: 1, events: 0, revents: 0 });
        let there = Borrowed::of(&shared);
        store!(shared, fd = 2);
        assert_eq!((load!(*there.get(), fd), load!(shared, fd)), (2, 2));
    }

    #[test]
    fn an_array_without_elements_needs_no_address() {
        // SAFETY: an empty array has no elements; a null one is not read.
        let (empty, missing) = unsafe { (elements::<u8>(ptr::null(), 0), elements::<u8>(ptr::null(), 1)) };
        assert_eq!((empty, missing), (Some(&[][..]), None));
    }
}
