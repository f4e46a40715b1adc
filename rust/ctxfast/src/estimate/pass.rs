//! The pass over a text, piece by piece: what is mostly ASCII as blocks, the rest and short texts by the character.

#![expect(
    clippy::inline_always,
    reason = "a kernel of `dispatch.rs`: what is not inlined is not compiled for AVX2"
)]

use super::Sums;
use super::blocks::{BLOCK, Block, STRIDE};
use super::mixed;
use super::tables::{NEUTRAL, SLOTS};
use crate::dispatch::{self, Kernel, Vectors};

/// What stands before and behind a text.
const LINE_END: u32 = b'\n' as u32;

/// A block pays where at most one of so many characters is not ASCII.
const FEW: usize = 3;

/// The sums of a text.
pub(super) fn sums<T: Copy + Into<u32>>(units: &[T], slots: &[u16; SLOTS]) -> Sums {
    if units.len() < STRIDE {
        let (mut sums, mut seam) = (Sums::default(), Seam::START);
        sums.add(mixed::sum(&mut seam, units, slots), units.len());
        return sums;
    }
    dispatch::best(Pass { units, slots })
}

/// The pass over a text.
pub(super) struct Pass<'a, T> {
    pub(super) units: &'a [T],
    pub(super) slots: &'a [u16; SLOTS],
}

impl<T: Copy + Into<u32>> Kernel for Pass<'_, T> {
    type Output = Sums;

    #[inline(always)]
    fn run(self, _: impl Vectors) -> Sums {
        let mut sums = Sums::default();
        let mut seam = Seam::START;
        let mut block = None;
        let mut rest = self.units;
        while !rest.is_empty() {
            let Some((units, others)) = rest.split_at_checked(rest.len().min(BLOCK)) else { break };
            seam.next = others.first().map_or(LINE_END, |&unit| unit.into());
            let strangers = not_ascii(units);
            let found = if units.len() >= STRIDE && strangers <= units.len() / FEW {
                block.get_or_insert_with(Block::new).sum(&mut seam, units, strangers > 0, self.slots)
            } else {
                mixed::sum(&mut seam, units, self.slots)
            };
            sums.add(found, units.len());
            seam.before = units.last().map_or(LINE_END, |&unit| unit.into());
            rest = others;
        }
        sums
    }
}

impl Sums {
    /// Adds a stretch: the sum of its slots, the sum of their costs alone, and its length.
    #[inline(always)]
    fn add(&mut self, (all, costs): (u32, u32), chars: usize) {
        self.cost += u64::from(costs);
        self.chars += chars as u64;
        self.register += i64::from((all - costs) >> 8) - i64::from(NEUTRAL) * (chars as u64).cast_signed();
    }
}

/// How a stretch of text hangs together with what is around it.
pub(super) struct Seam {
    pub(super) before: u32,
    /// how often the run of the character before went on, up to 7
    pub(super) run: u32,
    pub(super) next: u32,
}

impl Seam {
    /// Where a text starts, and ends.
    const START: Seam = Seam { before: LINE_END, run: 0, next: LINE_END };
}

/// How many characters are not ASCII.
#[inline(always)]
fn not_ascii<T: Copy + Into<u32>>(units: &[T]) -> usize {
    // most often there are none, which is known faster
    if is_ascii(units) { 0 } else { units.iter().filter(|&&unit| unit.into() >= 128).count() }
}

#[inline(always)]
pub(super) fn is_ascii<T: Copy + Into<u32>>(units: &[T]) -> bool {
    // in strides, so that they are compared in vectors of their own width
    let (strides, rest) = units.as_chunks::<STRIDE>();
    let all = |units: &[T]| units.iter().fold(0, |all, &unit| all | unit.into()) < 128;
    strides.iter().all(|stride| all(stride)) && all(rest)
}
