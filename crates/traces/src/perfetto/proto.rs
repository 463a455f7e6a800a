//! Protocol buffers (protobuf.dev, "Encoding"), limited to what a trace needs: fields are appended to bytes.

/// A message in construction.
#[derive(Default)]
pub(crate) struct Message(Vec<u8>);

/// The encoding of a field's value.
enum Wire {
    Varint = 0,
    Fixed64 = 1,
    Length = 2,
}

impl Message {
    /// Appends an integer, truth value or enumeration; negative numbers as two's complement.
    pub(crate) fn int(&mut self, field: u32, value: i64) -> &mut Self {
        self.uint(field, value as u64)
    }
    /// Appends a non-negative number.
    pub(crate) fn uint(&mut self, field: u32, value: u64) -> &mut Self {
        self.key(field, Wire::Varint);
        self.varint(value);
        self
    }
    /// Appends a number of eight bytes.
    pub(crate) fn fixed64(&mut self, field: u32, value: u64) -> &mut Self {
        self.key(field, Wire::Fixed64);
        self.0.extend(value.to_le_bytes());
        self
    }
    /// Appends a text.
    pub(crate) fn text(&mut self, field: u32, value: &str) -> &mut Self {
        self.bytes(field, value.as_bytes())
    }
    /// Appends a message as a field of this one.
    pub(crate) fn message(&mut self, field: u32, value: &Self) -> &mut Self {
        self.bytes(field, &value.0)
    }
    /// Returns the bytes so far.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
    /// Clears the message, keeping its memory.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    fn bytes(&mut self, field: u32, value: &[u8]) -> &mut Self {
        self.key(field, Wire::Length);
        self.varint(value.len() as u64);
        self.0.extend(value);
        self
    }
    fn key(&mut self, field: u32, wire: Wire) {
        self.varint(u64::from(field) << 3 | wire as u64);
    }
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_look_as_the_documentation_has_them() {
        let mut inner = Message::default();
        inner.uint(1, 150);
        assert_eq!(inner.as_bytes(), [0x08, 0x96, 0x01]);
        let mut outer = Message::default();
        outer.text(2, "testing").message(3, &inner).int(4, -1).fixed64(5, 1);
        let expected: &[&[u8]] = &[
            &[0x12, 7],
            b"testing",
            &[0x1a, 3, 0x08, 0x96, 0x01],
            &[0x20, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
            &[0x29, 1, 0, 0, 0, 0, 0, 0, 0],
        ];
        assert_eq!(outer.as_bytes(), expected.concat());
    }
}
