//! Writes protobuf: as much of its wire form as the messages of OTLP need. Fields with the value zero are left out, as in proto3.

/// One message that is being written.
#[derive(Default)]
pub(super) struct Message(Vec<u8>);

const VARINT: u64 = 0;
const FIXED_64: u64 = 1;
const LENGTH: u64 = 2;
const FIXED_32: u64 = 5;

impl Message {
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn key(&mut self, field: u64, wire_type: u64) {
        self.varint(field << 3 | wire_type);
    }

    /// An `int64`, `uint64`, `bool` or `enum`.
    pub(super) fn number(&mut self, field: u64, value: i64) {
        if value != 0 {
            self.number_as_is(field, value);
        }
    }

    /// A number that is one of a `oneof`, where zero is a value like others.
    pub(super) fn number_as_is(&mut self, field: u64, value: i64) {
        self.key(field, VARINT);
        self.varint(value.cast_unsigned());
    }

    pub(super) fn fixed_32(&mut self, field: u64, value: u32) {
        if value != 0 {
            self.key(field, FIXED_32);
            self.0.extend_from_slice(&value.to_le_bytes());
        }
    }

    pub(super) fn fixed_64(&mut self, field: u64, value: u64) {
        if value != 0 {
            self.fixed_64_as_is(field, value);
        }
    }

    pub(super) fn fixed_64_as_is(&mut self, field: u64, value: u64) {
        self.key(field, FIXED_64);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(super) fn double_as_is(&mut self, field: u64, value: f64) {
        self.fixed_64_as_is(field, value.to_bits());
    }

    pub(super) fn bytes(&mut self, field: u64, value: &[u8]) {
        if !value.is_empty() {
            self.bytes_as_is(field, value);
        }
    }

    pub(super) fn bytes_as_is(&mut self, field: u64, value: &[u8]) {
        self.key(field, LENGTH);
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
    }

    pub(super) fn text(&mut self, field: u64, value: &str) {
        self.bytes(field, value.as_bytes());
    }

    /// A message within this one.
    pub(super) fn nested(&mut self, field: u64, write: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        write(&mut inner);
        self.bytes_as_is(field, &inner.0);
    }

    /// Numbers of eight bytes, one after the other.
    pub(super) fn packed_64(&mut self, field: u64, values: impl ExactSizeIterator<Item = u64>) {
        if values.len() == 0 {
            return;
        }
        self.key(field, LENGTH);
        self.varint(values.len() as u64 * 8);
        values.for_each(|value| self.0.extend_from_slice(&value.to_le_bytes()));
    }
}

#[cfg(test)]
mod tests {
    use super::Message;

    #[test]
    fn it_is_written_as_the_encoding_says() {
        let mut message = Message::default();
        message.number(1, 150);
        message.number(2, 0);
        message.text(2, "testing");
        message.nested(3, |inner| inner.number(1, -1));
        message.fixed_32(5, 1);
        message.packed_64(4, [1, 2].into_iter());
        let expected = [
            &[0x08, 0x96, 0x01][..],
            b"\x12\x07testing",
            &[0x1a, 11, 0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
            &[0x2d, 1, 0, 0, 0],
            &[0x22, 16, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0],
        ];
        assert_eq!(message.into_bytes(), expected.concat());
    }
}
