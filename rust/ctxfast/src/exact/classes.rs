//! What the split patterns ask of a character: a table probed from tiktoken by `tools/exact/unicode_classes.py`.

/// `\p{L}`
pub(super) const LETTER: u8 = 1;
/// `\p{N}`
pub(super) const NUMBER: u8 = 2;
/// `\s`
pub(super) const SPACE: u8 = 4;
/// `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`
pub(super) const UPPER: u8 = 8;
/// `[\p{Ll}\p{Lm}\p{Lo}\p{M}]`
pub(super) const LOWER: u8 = 16;

/// `[\r\n/]`, which signs may have behind them
pub(super) const TAIL: u8 = 32;
/// A space or an apostrophe, which pieces of their own kind begin with.
pub(super) const LEAD: u8 = 64;
/// No character: a surrogate, or a point above U+10FFFF.
pub(super) const END: u8 = 128;

const BLOCK: usize = 128;
const BLOCKS: usize = 0x11_0000 / BLOCK;

/// The number of each block, then the blocks.
static TABLE: &[u8; BLOCKS + 230 * BLOCK] = include_bytes!("../../vocab/classes.bin");

/// Those of the code points that have three bytes at most in UTF-8.
#[expect(clippy::indexing_slicing, reason = "while compiling")]
static FIRST: [u8; 1 << 16] = {
    let mut first = [0; 1 << 16];
    let mut point = 0;
    while point < first.len() {
        let own = match point {
            0x0A | 0x0D | 0x2F => TAIL,
            0x20 | 0x27 => LEAD,
            0xD800..0xE000 => END,
            _ => 0,
        };
        first[point] = TABLE[BLOCKS + TABLE[point / BLOCK] as usize * BLOCK + point % BLOCK] | own;
        point += 1;
    }
    first
};

/// The classes of a code point, as bits.
#[inline(always)]
pub(super) fn classes(point: u32) -> u8 {
    let point = point as usize;
    FIRST.get(point).copied().unwrap_or_else(|| other(point))
}

fn other(point: usize) -> u8 {
    if point >= 0x11_0000 {
        return END;
    }
    let block: usize = TABLE.get(point / BLOCK).map_or(0, |&block| block.into());
    TABLE.get(BLOCKS + block * BLOCK + point % BLOCK).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_those_of_tiktoken_s_engine() {
        assert_eq!(classes(u32::from('a')), LETTER | LOWER);
        assert_eq!(classes(u32::from('A')), LETTER | UPPER);
        assert_eq!(classes(u32::from('ส')), LETTER | UPPER | LOWER);
        assert_eq!(classes(0x301), UPPER | LOWER); // a combining mark
        assert_eq!(classes(u32::from('7')), NUMBER);
        assert_eq!(classes(0x3000), SPACE);
        assert_eq!(classes(0x1C), 0); // Python calls it white space
        assert_eq!(classes(0x10_FFFF), 0);
        assert_eq!(classes(0x11_0000), END);
    }

    #[test]
    fn the_first_ones_are_those_of_the_table() {
        for point in 0..1 << 16 {
            let classes = classes(point);
            let Some(char) = char::from_u32(point) else {
                assert_eq!(classes, END);
                continue;
            };
            assert_eq!(classes & !(TAIL | LEAD), other(point as usize));
            assert_eq!(classes & TAIL != 0, "\r\n/".contains(char));
            assert_eq!(classes & LEAD != 0, " '".contains(char));
        }
    }
}
