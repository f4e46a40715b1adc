//! Counting loops over text in its three storage widths.
//!
//! Plain safe Rust that the compiler vectorises: chunks short enough for a narrow accumulator, range tests as one
//! wrapping subtraction and one comparison, sums of booleans instead of branches. The rule for a single character is
//! in [`super::naive`].

use super::{Escapes, naive};

/// Elements a chunk; every per-element count below is at most 5, so `u16` sums cannot overflow.
const CHUNK: usize = 512;

/// Sums a small number for each element.
#[inline]
fn sum<T: Copy>(units: &[T], count: impl Fn(T) -> u16) -> usize {
    units.chunks(CHUNK).map(|chunk| usize::from(chunk.iter().map(|&unit| count(unit)).sum::<u16>())).sum()
}

#[inline]
fn within(unit: u32, start: u32, end: u32) -> u16 {
    u16::from(unit.wrapping_sub(start) < end - start)
}

/// How often a unit occurs.
pub(super) fn count<T: Copy + PartialEq>(units: &[T], wanted: T) -> usize {
    sum(units, |unit| u16::from(unit == wanted))
}

/// Where a unit stands first. (For single bytes there is `memchr`.)
pub(super) fn find<T: Copy + PartialEq>(units: &[T], wanted: T) -> Option<usize> {
    const STRIDE: usize = 16; // looked at together, which the compiler makes a few wide comparisons
    let whole = units.chunks(STRIDE).position(|chunk| chunk.contains(&wanted))?;
    let start = whole * STRIDE;
    units.get(start..)?.iter().position(|&unit| unit == wanted).map(|place| start + place)
}

pub(super) fn utf8_bytes_1(units: &[u8]) -> usize {
    sum(units, |unit| 1 + u16::from(unit >> 7))
}

pub(super) fn utf8_bytes_2(units: &[u16]) -> usize {
    sum(units, |unit| 1 + u16::from(unit >= 0x80) + u16::from(unit >= 0x800))
}

pub(super) fn utf8_bytes_4(units: &[u32]) -> usize {
    sum(units, |unit| 1 + u16::from(unit >= 0x80) + u16::from(unit >= 0x800) + u16::from(unit >= 0x1_0000))
}

pub(super) fn thai_2(units: &[u16]) -> usize {
    sum(units, |unit| u16::from(unit.wrapping_sub(0xe00) < 0x80))
}

pub(super) fn thai_4(units: &[u32]) -> usize {
    sum(units, |unit| within(unit, 0xe00, 0xe80))
}

pub(super) fn escapes_1(units: &[u8], escapes: Escapes) -> usize {
    match escapes {
        Escapes::Json => sum(units, |unit| json_escape(unit.into())),
        Escapes::Go => sum(units, |unit| json_escape(unit.into()) + 5 * html(unit.into())),
    }
}

pub(super) fn escapes_2(units: &[u16], escapes: Escapes) -> (usize, usize) {
    match escapes {
        Escapes::Json => (sum(units, |unit| json_escape(unit.into())), 0),
        Escapes::Go => go_escapes(units.iter().map(|&unit| unit.into())),
    }
}

pub(super) fn escapes_4(units: &[u32], escapes: Escapes) -> (usize, usize) {
    match escapes {
        Escapes::Json => (sum(units, json_escape), 0),
        Escapes::Go => go_escapes(units.iter().copied()),
    }
}

/// Schemas with wide characters are short and rare: no kernel.
fn go_escapes(points: impl Iterator<Item = u32>) -> (usize, usize) {
    naive::escapes(points, Escapes::Go)
}

/// 5 for a control character, 1 for those that have a short escape, and for the quote and the backslash.
#[inline]
fn json_escape(unit: u32) -> u16 {
    let control = within(unit, 0, 0x20);
    let short = within(unit, 0x08, 0x0b) + within(unit, 0x0c, 0x0e); // \b \t \n, \f \r
    5 * control - 4 * short + u16::from(unit == 0x22) + u16::from(unit == 0x5c)
}

#[inline]
fn html(unit: u32) -> u16 {
    u16::from(unit == 0x3c) + u16::from(unit == 0x3e) + u16::from(unit == 0x26)
}
