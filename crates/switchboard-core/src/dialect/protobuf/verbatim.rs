//! A message that is kept as it stands on the wire.

use prost::DecodeError;
use prost::bytes::{Buf, BufMut, Bytes};
use prost::encoding::{
    DecodeContext, WireType, bytes, decode_varint, encode_key, encode_varint, fixed32, fixed64, skip_field,
};

/// A `google.protobuf.Struct` or `Value`, not yet read. The trees that protobuf makes of them take many times the
/// memory of their bytes, and no code here needs a tree: the model keeps free-form JSON as text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Verbatim(pub Vec<u8>);

impl prost::Message for Verbatim {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        buf.put_slice(&self.0);
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<(), DecodeError> {
        match wire_type {
            WireType::Varint => {
                let value = decode_varint(buf)?;
                encode_key(tag, wire_type, &mut self.0);
                encode_varint(value, &mut self.0);
            }
            WireType::SixtyFourBit => {
                let mut value = 0;
                fixed64::merge(wire_type, &mut value, buf, ctx)?;
                fixed64::encode(tag, &value, &mut self.0);
            }
            WireType::ThirtyTwoBit => {
                let mut value = 0;
                fixed32::merge(wire_type, &mut value, buf, ctx)?;
                fixed32::encode(tag, &value, &mut self.0);
            }
            WireType::LengthDelimited => {
                let mut value = Bytes::new();
                bytes::merge(wire_type, &mut value, buf, ctx)?;
                bytes::encode(tag, &value, &mut self.0);
            }
            // Nothing we know has groups.
            WireType::StartGroup | WireType::EndGroup => skip_field(wire_type, tag, buf, ctx)?,
        }
        Ok(())
    }

    fn encoded_len(&self) -> usize {
        self.0.len()
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}
