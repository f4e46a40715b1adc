//! What is done to a text before it is cut into pieces: special tokens are taken out, and some tokenizers normalise.

use std::sync::Arc;

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

use super::read::read;
use super::special::Special;
use crate::text::Text;

/// What is done to a text, in the order of the fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Prepare {
    /// Special tokens, each of which counts as 1.
    pub(super) special: Special,
    /// The text between is put into Unicode's normal form C.
    pub(super) nfc: bool,
    /// Special tokens that are looked for in what came of that.
    pub(super) special_after: Special,
}

impl Prepare {
    /// To be shared; nothing if it does nothing.
    pub(super) fn unless_idle(self) -> Option<Arc<Prepare>> {
        (self != Prepare::default()).then(|| Arc::new(self))
    }

    /// What a text counts for which `count` says what the prepared parts of it count, with a limit.
    pub(super) fn count(&self, text: Text<'_>, limit: u64, count: impl Fn(Text<'_>, u64) -> u64) -> u64 {
        self.special.count(text, limit, |text, limit| {
            let normal = if self.nfc { normal(text) } else { None };
            let text = normal.as_deref().map_or(text, Text::Utf8);
            self.special_after.count(text, limit, &count)
        })
    }

    /// Units of a text that one token can stand for, if so many bytes are its longest one.
    pub(super) fn longest(&self, longest: usize) -> usize {
        // what is composed of two characters has two bytes at least, of three characters three, and so on
        let ordinary = longest.max(self.special_after.longest()) * if self.nfc { 2 } else { 1 };
        ordinary.max(self.special.longest())
    }
}

/// The normal form of a text that is not in it.
fn normal(text: Text<'_>) -> Option<String> {
    if let Text::Ucs1(_) = text {
        return None;
    }
    let mut plain = true;
    text.each_point(|point| plain &= is_plain(point));
    if plain {
        return None;
    }
    let mut bytes = Vec::new();
    let mut place = 0;
    loop {
        let end = read(text, place..usize::MAX, &mut bytes);
        if end == place {
            break;
        }
        place = end;
    }
    let text = String::from_utf8(bytes).ok()?;
    (is_nfc_quick(text.chars()) != IsNormalized::Yes).then(|| text.nfc().collect())
}

/// Whether a character stands for itself whatever is around it: not all of those, but most that texts have.
#[inline]
fn is_plain(point: u32) -> bool {
    matches!(point, ..0x300 | 0x3A0..0x483 | 0x2010..0x20D0 | 0x3000..0x302A | 0x3040..0x3099 | 0x30A0..0xA000)
        || matches!(point, 0xAC00..0xD7A4 | 0xFF00..0xFFF0 | 0x1_F000..0x1_FB00)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use unicode_normalization::char::canonical_combining_class;

    use super::*;

    #[test]
    fn plain_characters_are_normal_anywhere() {
        for char in ('\0'..=char::MAX).filter(|&char| is_plain(char.into())) {
            assert_eq!(is_nfc_quick(std::iter::once(char)), IsNormalized::Yes, "{char:?}");
            assert_eq!(canonical_combining_class(char), 0, "{char:?}");
        }
    }

    #[test]
    fn a_normal_form_has_half_as_many_bytes_as_there_are_characters_at_least() {
        for char in '\0'..=char::MAX {
            let apart = char.to_string().nfd().count();
            assert!(2 * char.len_utf8() >= apart, "{char:?}");
            let normal: String = char.to_string().nfc().collect();
            assert!(2 * normal.len() >= apart, "{char:?}");
        }
    }

    proptest! {
        #[test]
        fn texts_become_normal(text in "([a-z中\u{300}-\u{320}\u{AC01}\u{1100}-\u{1120}\u{1161}-\u{1170}\u{11A8}-\u{11B0}\u{212B}\u{1E9B}\u{323}\u{2000}]|\\PC){0,20}") {
            let wide: Vec<u32> = text.chars().map(u32::from).collect();
            let expected: String = text.nfc().collect();
            for text in [Text::Utf8(&text), Text::Ucs4(&wide)] {
                prop_assert_eq!(normal(text).unwrap_or_else(|| text.to_well_formed()), expected.as_str());
            }
        }
    }
}
