//! Numbered places for what comes and goes: flows of a host, by small numbers that are used again.

use alloc::vec::Vec;

/// Numbered places for values of one kind.
#[derive(Debug)]
pub struct Places<T> {
    places: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Places<T> {
    fn default() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }
}

impl<T> Places<T> {
    /// Puts a value into the place that became free last, or into a new one; returns the place's number.
    pub fn put(&mut self, value: T) -> u32 {
        if let Some(place) = self.free.pop() {
            self.places[place as usize] = Some(value);
            return place;
        }
        if self.places.is_empty() {
            // Most hosts have one; a vector would begin with space for four.
            self.places.reserve_exact(1);
        }
        self.places.push(Some(value));
        (self.places.len() - 1) as u32
    }

    /// Returns the value in a place; `None` if the place is empty or does not exist.
    #[inline]
    pub fn get(&self, place: u32) -> Option<&T> {
        self.places.get(place as usize)?.as_ref()
    }

    /// Like [`Places::get`], to change the value.
    #[inline]
    pub fn get_mut(&mut self, place: u32) -> Option<&mut T> {
        self.places.get_mut(place as usize)?.as_mut()
    }

    /// Removes a value; its place is free.
    pub fn take(&mut self, place: u32) -> Option<T> {
        let value = self.take_and_keep(place);
        if value.is_some() {
            self.free.push(place);
        }
        value
    }

    /// Removes a value; its place stays empty until [`Places::free`].
    pub fn take_and_keep(&mut self, place: u32) -> Option<T> {
        self.places.get_mut(place as usize)?.take()
    }

    /// Makes a place free that [`Places::take_and_keep`] has emptied.
    pub fn free(&mut self, place: u32) {
        self.free.push(place);
    }

    /// Returns all places, empty ones among them.
    #[inline]
    pub fn all(&self) -> &[Option<T>] {
        &self.places
    }
}
