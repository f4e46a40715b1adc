//! Numbers of short pieces, in a table of a fixed size: what the memory of pieces and a vocabulary's own words are in.

use std::hint::black_box;

use crate::dispatch::prefetch;

/// Bytes of the longest piece that fits.
pub(super) const LONGEST: usize = 15;

/// Up to 15 bytes, zeros behind them, and the length, in two halves. The highest four bits are zero.
/// That of no piece is all zeros.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Key {
    low: u64,
    high: u64,
}

/// Bits of the high half before the count.
const COUNT: u32 = 60;

impl Key {
    /// Whether it is that of a piece.
    #[inline]
    pub(super) fn is_some(self) -> bool {
        self.high != 0
    }

    /// That of the first `length` bytes, at most 15.
    #[inline(always)]
    pub(super) fn first(chunk: &[u8; 16], length: usize) -> Option<Key> {
        let [low_mask, high_mask] = MASKS.get(length)?;
        let (low, high) = halves(chunk);
        Some(Key { low: low & low_mask, high: high & high_mask | (length as u64) << (COUNT - 4) })
    }

    /// That of a piece of at most 15 bytes.
    #[inline]
    pub(super) fn of(piece: &[u8]) -> Option<Key> {
        let mut chunk = [0; 16];
        for (to, from) in chunk.iter_mut().zip(piece) {
            *to = *from;
        }
        Key::first(&chunk, piece.len())
    }
}

/// A line of the cache: four keys, each with a count in its highest four bits, or zeros. Kept as the low and the high
/// halves of all four, to be compared at once.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Set {
    low: [u64; 4],
    high: [u64; 4],
}

impl Set {
    /// The count of a piece, or 0. All four are looked at, for nobody can predict which it is.
    #[inline(always)]
    fn count(&self, key: Key) -> u8 {
        let mut count = 0;
        for (low, high) in self.low.iter().zip(&self.high) {
            let differs = (low ^ key.low) | (high ^ key.high) << 4;
            count |= high >> COUNT & u64::from(differs == 0).wrapping_neg();
        }
        count.to_le_bytes()[0]
    }
}

/// Counts from 1 to 15, by pieces of at most 15 bytes.
#[derive(Debug)]
pub(super) struct Sets(Box<[Set]>);

impl Sets {
    /// With room for so many times four, a power of two.
    pub(super) fn new(sets: usize) -> Sets {
        Sets(vec![Set::default(); sets.next_power_of_two()].into_boxed_slice())
    }

    #[inline(always)]
    fn place(&self, key: Key) -> usize {
        (mix(key.low, key.high) >> 32) as usize & (self.0.len() - 1)
    }

    /// The count of a piece, if it is there.
    #[inline(always)]
    pub(super) fn get(&self, key: Key) -> Option<u8> {
        self.0.get(self.place(key)).map(|set| set.count(key)).filter(|&count| count != 0)
    }

    /// Fetches all of it.
    pub(super) fn fetch(&self) {
        black_box(self.0.iter().fold(0, |all, set| all ^ set.low[0]));
    }

    /// Fetches the place of a piece, without waiting.
    #[inline(always)]
    pub(super) fn prefetch(&self, key: Key) {
        if let Some(set) = self.0.get(self.place(key)) {
            prefetch(set);
        }
    }

    /// Puts a piece that is not there in front of the others of its set; the last of them is forgotten.
    #[inline]
    pub(super) fn put(&mut self, key: Key, count: usize) {
        let place = self.place(key);
        let Some(set) = self.0.get_mut(place).filter(|_| count < 16) else { return };
        set.low.rotate_right(1);
        set.high.rotate_right(1);
        (set.low[0], set.high[0]) = (key.low, key.high | (count as u64) << COUNT);
    }
}

/// A hash, of which the high bits are good.
#[inline(always)]
pub(super) fn mix(low: u64, high: u64) -> u64 {
    let mixed = low.wrapping_mul(MIXER) ^ high.wrapping_mul(0xC2B2_AE3D_27D4_EB4F).rotate_left(23);
    mixed.wrapping_mul(MIXER)
}

const MIXER: u64 = 0x9E37_79B9_7F4A_7C15;

#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the two halves")]
fn halves(bytes: &[u8; 16]) -> (u64, u64) {
    let both = u128::from_le_bytes(*bytes);
    (both as u64, (both >> 64) as u64)
}

static MASKS: [[u64; 2]; LONGEST + 1] = masks();

/// The first bytes of a key, by their number.
#[expect(clippy::indexing_slicing, reason = "while compiling")]
pub(super) const fn masks<const PARTS: usize, const LENGTHS: usize>() -> [[u64; PARTS]; LENGTHS] {
    let mut masks = [[0; PARTS]; LENGTHS];
    let mut length = 1;
    while length < LENGTHS {
        masks[length] = masks[length - 1];
        let part = (length - 1) / 8;
        masks[length][part] = masks[length][part] << 8 | 0xFF;
        length += 1;
    }
    masks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_is_known_by_its_bytes_and_its_length() {
        let mut sets = Sets::new(1 << 10);
        for length in 0..16 {
            let piece = vec![0; length];
            assert_eq!(sets.get(Key::of(&piece).unwrap()), None);
            sets.put(Key::of(&piece).unwrap(), 15 - length / 2);
        }
        for length in 0..16_u8 {
            let mut chunk = [0; 16];
            chunk[usize::from(length)..].fill(7); // what is behind the piece does not matter
            let key = Key::first(&chunk, length.into()).unwrap();
            assert_eq!(sets.get(key), Some(15 - length / 2));
        }
        assert!(Key::of(&[0; 16]).is_none());
    }

    #[test]
    fn the_last_of_five_in_a_set_is_forgotten() {
        let mut sets = Sets::new(1);
        let keys: Vec<Key> = (b'a'..=b'e').map(|byte| Key::of(&[byte]).unwrap()).collect();
        for key in &keys {
            sets.put(*key, 1);
        }
        let known: Vec<bool> = keys.iter().map(|key| sets.get(*key).is_some()).collect();
        assert_eq!(known, [false, true, true, true, true]);
    }
}
