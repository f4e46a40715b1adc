//! The twin of the pass over a text: character by character, each asked for what it is, in the table as delivered.

use super::Sums;
use super::classes::{Class, Sort};
use super::tables::Packed;

pub(super) fn sums(table: &Packed, points: &[u32]) -> Sums {
    let mut sums = Sums { chars: points.len() as u64, ..Sums::default() };
    let classes: Vec<Class> = points.iter().map(|&point| Class::of(point)).collect();
    let mut run = 0;
    for (place, &here) in classes.iter().enumerate() {
        let before = if place == 0 { Class::LINE_END } else { classes[place - 1] };
        let next = classes.get(place + 1).copied().unwrap_or(Class::LINE_END);
        // letters go on, but not from lower to upper case; so do digits, and spaces
        run = match (before.run, here.run) {
            (1 | 5, 1 | 5) | (2, 1 | 2 | 5) | (5, 2) | (3, 3) | (4, 4) => run + 1,
            _ => 0,
        };
        let after = usize::from(next.after_others());
        let low = |point: u32, bits: u32| (point & ((1 << bits) - 1)) as usize;
        sums.cost += u64::from(match here.sort() {
            Sort::Ascii => {
                let length = [2, 4, 7].iter().filter(|&&least| run >= least).count();
                let around = usize::from(before.symbol) * 96 + usize::from(here.symbol);
                let slot = (around * 4 + length) * 4 + usize::from(next.of_four());
                sums.register += i64::from(table.registers[slot].cast_signed());
                table.ascii[slot]
            }
            Sort::Alphabet(alphabet) => {
                let letter =
                    if before.is_ascii() { usize::from(before.symbol_64) } else { 64 + low(before.point, 6) };
                table.alphabets
                    [((usize::from(alphabet) * 128 + letter) * 64 + low(here.point, 6)) * 4 + after]
            }
            Sort::Han => {
                // a multiplicative hash spreads the characters, as 2^16 over the golden ratio does
                let group = low(here.point.wrapping_mul(40_503) >> 3, 13);
                table.han[(group * 4 + after) * 2 + usize::from(before.is_east_asian())]
            }
            Sort::Other => {
                let around = usize::from(before.script_or_kind()) * 32 + usize::from(here.script);
                table.others[around * 40 + usize::from(next.script_or_kind())]
            }
        });
    }
    sums
}
