//! Numbered places that are reused.

/// Table of numbered places that are reused.
pub(crate) struct Places<T> {
    places: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Places<T> {
    pub(crate) const NEW: Self = Self { places: Vec::new(), free: Vec::new() };

    pub(crate) fn put(&mut self, value: T) -> u32 {
        if let Some(place) = self.free.pop() {
            self.places[place as usize] = Some(value);
            return place;
        }
        self.places.push(Some(value));
        (self.places.len() - 1) as u32
    }
    pub(crate) fn get_mut(&mut self, place: u32) -> &mut T {
        self.places[place as usize].as_mut().expect("the NIC names only places that are taken")
    }
    pub(crate) fn take(&mut self, place: u32) -> T {
        self.free.push(place);
        self.places[place as usize].take().expect("the NIC names only places that are taken")
    }
    pub(crate) fn get(&self, place: u32) -> Option<&T> {
        self.places.get(place as usize)?.as_ref()
    }
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.places.iter().flatten()
    }
}
