//! How long a JSON value is as compact text, without writing it; and its strings, for those who write it.

use crate::text::{Escapes, Text};

/// Length of a piece of JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Length {
    /// code points
    pub chars: usize,
    /// bytes of UTF-8
    pub bytes: usize,
    /// Thai characters among them
    pub thai: usize,
}

impl Length {
    /// Punctuation, `true`, digits: so many ASCII characters.
    pub fn add_ascii(&mut self, count: usize) {
        self.chars += count;
        self.bytes += count;
    }

    /// A string with its quotes.
    pub fn add_string(&mut self, text: Text<'_>, escapes: Escapes) {
        let (extra_chars, extra_bytes) = text.escapes(escapes);
        self.chars += text.chars() + extra_chars + 2;
        self.bytes += text.utf8_bytes() + extra_bytes + 2;
        self.thai += text.thai();
    }

    /// A floating-point number.
    pub fn add_float(&mut self, value: f64, escapes: Escapes) {
        self.add_ascii(match escapes {
            Escapes::Json => python_float(value),
            Escapes::Go => go_float(value),
        });
    }
}

/// Writes a string with its quotes, in UTF-8; lone surrogates as three bytes, as UTF-8 would write them if it did.
pub fn push_string(out: &mut Vec<u8>, text: Text<'_>) {
    out.push(b'"');
    text.each_point(|point| match point {
        0x22 | 0x5C => out.extend([b'\\', point.to_le_bytes()[0]]),
        0x08 => out.extend(b"\\b"),
        0x09 => out.extend(b"\\t"),
        0x0A => out.extend(b"\\n"),
        0x0C => out.extend(b"\\f"),
        0x0D => out.extend(b"\\r"),
        0..0x20 => out.extend(format!("\\u{point:04x}").as_bytes()),
        _ => push_point(out, point),
    });
    out.push(b'"');
}

/// Writes a text as it is, in the same encoding.
pub fn push_text(out: &mut Vec<u8>, text: Text<'_>) {
    text.each_point(|point| push_point(out, point));
}

fn push_point(out: &mut Vec<u8>, point: u32) {
    match (point, char::from_u32(point)) {
        (..0x80, _) => out.push(point.to_le_bytes()[0]),
        (_, Some(char)) => out.extend(char.encode_utf8(&mut [0; 4]).as_bytes()),
        (_, None) => {
            let [low, high, ..] = point.to_le_bytes();
            out.extend([0xE0 | high >> 4, 0x80 | (high & 0xF) << 2 | low >> 6, 0x80 | low & 0x3F]);
        }
    }
}

/// The shortest decimal digits that read back as `value`, and where the point stands among them: how many digits
/// there are, and how many of them (perhaps none, perhaps more than there are) come before the point.
fn digits(value: f64) -> (i64, i64) {
    let text = format!("{:e}", value.abs());
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let count = mantissa.bytes().filter(u8::is_ascii_digit).count();
    (i64::try_from(count).unwrap_or(0), exponent.parse::<i64>().unwrap_or(0) + 1)
}

/// Length of Python's `repr`: an exponent of two digits or more below 1e-4 and from 1e16 on, else at least one decimal.
fn python_float(value: f64) -> usize {
    let sign = usize::from(value.is_sign_negative() && !value.is_nan());
    if !value.is_finite() {
        return sign + if value.is_nan() { 3 } else { 8 }; // NaN, Infinity
    }
    let (count, point) = digits(value);
    let exponent = point - 1;
    let length = if value == 0.0 {
        3
    } else if (-4..16).contains(&exponent) {
        if point <= 0 { 2 - point + count } else { (count + 1).max(point + 2) }
    } else {
        scientific(count, exponent, 2)
    };
    sign + usize::try_from(length).unwrap_or(0)
}

/// Length of Go's float64 in JSON: an exponent below 1e-6 and from 1e21 on, no decimals where there are none.
fn go_float(value: f64) -> usize {
    let sign = usize::from(value.is_sign_negative() && !value.is_nan());
    if !value.is_finite() {
        return sign + if value.is_nan() { 3 } else { 8 };
    }
    let (count, point) = digits(value);
    let length = if value == 0.0 {
        1
    } else if (1e-6..1e21).contains(&value.abs()) {
        if point <= 0 { 2 - point + count } else { point.max(count) + i64::from(count > point) }
    } else {
        scientific(count, point - 1, 1)
    };
    sign + usize::try_from(length).unwrap_or(0)
}

/// Length of `d.ddde+XX`.
fn scientific(count: i64, exponent: i64, least_exponent_digits: i64) -> i64 {
    let exponent_digits = match exponent.abs() {
        0..=9 => 1,
        10..=99 => 2,
        _ => 3,
    };
    count + i64::from(count > 1) + 2 + exponent_digits.max(least_exponent_digits)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn python_floats() {
        for (value, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (0.1, "0.1"),
            (-12.5, "-12.5"),
            (1e15, "1000000000000000.0"),
            (123_456_789_012_345_680.0, "1.2345678901234568e+17"),
            (1e16, "1e+16"),
            (0.0001, "0.0001"),
            (0.000_012, "1.2e-05"),
            (1e-7, "1e-07"),
            (1e100, "1e+100"),
            (5e-324, "5e-324"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(python_float(value), text.len(), "{text}");
        }
    }

    #[test]
    fn go_floats() {
        for (value, text) in [
            (0.0, "0"),
            (-5.0, "-5"),
            (100.0, "100"),
            (0.1, "0.1"),
            (12.5, "12.5"),
            (1e21, "1e+21"),
            (1.5e21, "1.5e+21"),
            (1e20, "100000000000000000000"),
            (1e-6, "0.000001"),
            (1e-7, "1e-7"),
            (1.25e-9, "1.25e-9"),
        ] {
            assert_eq!(go_float(value), text.len(), "{text}");
        }
    }

    #[test]
    fn lone_surrogates_are_three_bytes() {
        let mut out = Vec::new();
        push_string(&mut out, Text::Ucs2(&[0xD800, 0x61, 0xDFFF]));
        assert_eq!(out, b"\"\xED\xA0\x80a\xED\xBF\xBF\"");
    }

    proptest! {
        #[test]
        fn strings_as_serde_writes_them(text in "(\\PC|[\0-\x7f]|[\u{7f}-\u{2100}]){0,40}") {
            let mut out = Vec::new();
            push_string(&mut out, Text::from(text.as_str()));
            prop_assert_eq!(std::str::from_utf8(&out).unwrap(), serde_json::to_string(&text).unwrap());
            let mut length = Length::default();
            length.add_string(Text::from(text.as_str()), Escapes::Json);
            prop_assert_eq!(length.bytes, out.len());
        }
    }
}
