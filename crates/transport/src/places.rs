//! Numbered places for what comes and goes: flows of a host, by small numbers that are used again.

use alloc::boxed::Box;
use alloc::vec::Vec;

/// Places for values of one kind, each in an allocation of its own.
#[derive(Debug)]
pub(crate) struct Places<T> {
    places: Vec<Option<Box<T>>>,
    free: Vec<u32>,
}

impl<T> Default for Places<T> {
    fn default() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }
}

impl<T> Places<T> {
    /// Puts a value into the place that became free last, or into a new one; returns the place's number.
    pub(crate) fn put(&mut self, value: T) -> u32 {
        let value = Some(Box::new(value));
        match self.free.pop() {
            Some(place) => {
                self.places[place as usize] = value;
                place
            }
            None => {
                self.places.push(value);
                (self.places.len() - 1) as u32
            }
        }
    }

    pub(crate) fn get(&self, place: u32) -> Option<&T> {
        self.places.get(place as usize)?.as_deref()
    }

    pub(crate) fn get_mut(&mut self, place: u32) -> Option<&mut T> {
        self.places.get_mut(place as usize)?.as_deref_mut()
    }

    /// Removes a value; its place is free.
    pub(crate) fn take(&mut self, place: u32) -> Option<Box<T>> {
        let value = self.take_and_keep(place);
        if value.is_some() {
            self.free.push(place);
        }
        value
    }

    /// Removes a value; its place stays empty until [`Places::free`].
    pub(crate) fn take_and_keep(&mut self, place: u32) -> Option<Box<T>> {
        self.places.get_mut(place as usize)?.take()
    }

    /// Makes a place free that [`Places::take_and_keep`] has emptied.
    pub(crate) fn free(&mut self, place: u32) {
        self.free.push(place);
    }
}
