//! The pass over characters of any kind, one by one and without branches on the text.
//!
//! What makes a character Greek or Han also decides where in the table it is looked up and what it asks of its
//! neighbours. Text changes between spaces, letters and signs all the time, and a branch that guesses wrong costs more
//! than the look-up. So every character adds up the same terms, and its role says which of them are nothing.

use super::blocks::STRIDE;
use super::pass::{Seam, is_ascii};
use super::roles::{Roles, low_16};
use super::tables::SLOTS;

/// Any characters: the sum of their slots, and of the costs alone.
///
/// Not inlined into the kernel that calls it: there is nothing to do in vectors, and compiled for AVX2 it is slower.
#[inline(never)]
pub(super) fn sum<T: Copy + Into<u32>>(seam: &mut Seam, units: &[T], table: &[u16; SLOTS]) -> (u32, u32) {
    if units.len() < STRIDE && is_ascii(units) {
        one_by_one::<T, true>(seam, units, table)
    } else {
        one_by_one::<T, false>(seam, units, table)
    }
}

/// The same; `ASCII` leaves out the terms that are nothing for ASCII.
fn one_by_one<T: Copy + Into<u32>, const ASCII: bool>(
    seam: &mut Seam,
    units: &[T],
    table: &[u16; SLOTS],
) -> (u32, u32) {
    let Some((&first, others)) = units.split_first() else { return (0, 0) };
    let mut point = first.into();
    let (mut before, mut here) = (Roles::ALL.of(seam.before), Roles::ALL.of(point));
    let mut left = before.left(seam.before);
    let (mut all, mut costs) = (0, 0);
    others.iter().map(|&unit| unit.into()).chain([seam.next]).for_each(|next_point| {
        let next = Roles::ALL.of(next_point);
        let goes_on = before.runs.goes_on & here.runs.is != 0;
        seam.run = if goes_on { (seam.run + 1).min(7) } else { 0 };
        let level = LEVELS.get(seam.run as usize).copied().unwrap_or(0);
        let slot = if ASCII {
            here.start + low_16(left + next.right) + level
        } else {
            here.slot(point, left, next.right) + (level & here.level)
        };
        let found = u32::from(table.get(slot as usize).copied().unwrap_or(0));
        all += found;
        costs += found & 0xFF;
        left = if ASCII { here.left } else { here.left(point) };
        (point, before, here) = (next_point, here, next);
    });
    (all, costs)
}

/// 2^16 times the level of a run that went on so often: 1 from 2 on, 2 from 4 on, 3 from 7 on.
const LEVELS: [u32; 8] = [0, 0, 1 << 16, 1 << 16, 2 << 16, 2 << 16, 2 << 16, 3 << 16];
