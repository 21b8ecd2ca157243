//! Values as text.

use super::super::fault::WriteError;
use super::Writing;
use crate::rwf::{Array, DataType, Value};

impl Writing<'_, '_> {
    /// Writes a value of any type; blank is `null`.
    pub(super) fn value(&mut self, value: &Value<'_>, depth: usize) -> Result<(), WriteError> {
        let out = &mut *self.out;
        match *value {
            Value::Blank => out.null(),
            Value::Int(value) => out.signed(value),
            Value::UInt(value) => out.unsigned(value),
            Value::Float(value) => out.float(value.into(), value),
            Value::Double(value) => out.float(value, value),
            Value::Real(value) => out.real(value),
            Value::Date(value) => out.date(value),
            Value::Time(value) => out.time(value),
            Value::DateTime(value) => out.date_time(value),
            Value::Enum(value) => out.unsigned(value.into()),
            Value::Ascii(bytes) => out.latin1(bytes),
            Value::Utf8(bytes) => out.utf8(bytes),
            Value::Rmtes(text) => out.characters(text.characters(), text.0),
            Value::Qos(qos) => self.qos_object(qos),
            Value::State(state) => self.state_object(&state),
            Value::Array(array) => self.array(&array, depth)?,
            Value::Container(..) => match value.open()? {
                Some(container) => self.container(&container, depth)?,
                None => out.null(),
            },
            Value::Buffer(bytes) | Value::Unknown(bytes) => out.base64(bytes),
        }
        Ok(())
    }

    fn array(&mut self, array: &Array<'_>, depth: usize) -> Result<(), WriteError> {
        self.out.begin(b'{');
        self.code("Type", DataType::WORDS, array.item_type.0);
        self.out.key("Data");
        self.out.begin(b'[');
        for value in array.values() {
            let value = value?;
            self.out.separate();
            // An array in an array, which the format does not have, would be followed without limit.
            match value {
                Value::Array(_) | Value::Container(..) => self.out.null(),
                value => self.value(&value, depth)?,
            }
            self.bounded()?;
        }
        self.out.end(b']');
        self.out.end(b'}');
        Ok(())
    }
}
