//! What a text costs in tokens, estimated from its characters: one pass over a table for each family of tokenizers.
//!
//! Tokenizers cut where the class of characters changes, and rare pairs of letters. So a table says, for each character
//! in its neighbourhood (the one before, how long the run is, the class of the next), how many tokens start there on
//! average, in 1/64 token; the text's cost is the sum. A second table says how much a text in which the slot occurs
//! costs more or less than the first table thinks, which finds Turkish, German or Java; its mean corrects the sum.
//!
//! The tables were fitted to 6,166 documents of 55 kinds; on documents from other sources the mean error is 3.1 % to
//! 4.1 %, by family, where four characters per token are 23 % to 47 % off.
//!
//! A table of neighbours cannot see how far a thing repeats. Long texts that do (`repeats`) are counted exactly where the
//! vocabulary is in the package; for others there is a floor.

mod blocks;
mod classes;
mod mixed;
#[cfg(test)]
mod naive;
mod pass;
mod repeats;
mod roles;
mod tables;

use std::sync::OnceLock;

use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;

use self::repeats::repeats;
use self::tables::{PACKED, Packed, Table};
use crate::exact::{Encoding, Exact};
use crate::text::Text;

/// Tokenizers that cut alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// GPT-4o and later
    O200k,
    /// GPT-4 and GPT-3.5
    Cl100k,
    /// Claude 3 to 4.6
    ClaudeV3,
    /// Claude 4.7 and later
    ClaudeV47,
    /// Claude 2 and before
    ClaudeLegacy,
    /// Llama 3
    Llama3,
    /// Qwen 3
    Qwen3,
    /// `DeepSeek` V3
    DeepseekV3,
    /// Gemma 3, and Gemini
    Gemma3,
    /// Mistral's Tekken
    MistralTekken,
}

/// What is known of a family.
struct Entry {
    family: Family,
    name: &'static str,
    compressed: &'static [u8],
    packed: OnceLock<Vec<u8>>,
    table: OnceLock<Table>,
}

impl Entry {
    fn inflate(&self) -> Vec<u8> {
        decompress_to_vec_zlib_with_limit(self.compressed, PACKED).unwrap_or_default()
    }
}

static FAMILIES: [Entry; 10] = {
    macro_rules! entry {
        ($family:ident, $name:literal, $version:literal) => {
            Entry {
                family: Family::$family,
                name: $name,
                compressed: include_bytes!(concat!("../tables/", $name, "-", $version, ".z")),
                packed: OnceLock::new(),
                table: OnceLock::new(),
            }
        };
    }
    [
        entry!(O200k, "o200k", 2),
        entry!(Cl100k, "cl100k", 2),
        entry!(ClaudeV3, "claude_v3", 2),
        entry!(ClaudeV47, "claude_v47", 2),
        entry!(ClaudeLegacy, "claude_legacy", 2),
        entry!(Llama3, "llama3", 2),
        entry!(Qwen3, "qwen3", 2),
        entry!(DeepseekV3, "deepseek_v3", 2),
        entry!(Gemma3, "gemma3", 2),
        entry!(MistralTekken, "mistral_tekken", 2),
    ]
};

impl Family {
    /// All families, in the order of their definition.
    pub fn all() -> impl Iterator<Item = Family> {
        FAMILIES.iter().map(|entry| entry.family)
    }

    /// Its name, such as `claude_v47`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.entry().map_or("", |entry| entry.name)
    }

    /// The family of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Family> {
        FAMILIES.iter().find(|entry| entry.name == name).map(|entry| entry.family)
    }

    /// Its table as it was fitted: costs, registers and two coefficients. Inflated when it is first asked for;
    /// estimates are made with another form of it.
    #[must_use]
    pub fn table(self) -> &'static [u8] {
        self.entry().map_or(&[], |entry| entry.packed.get_or_init(|| entry.inflate()))
    }

    /// The vocabulary of the family, if it is in the package.
    #[must_use]
    pub fn encoding(self) -> Option<Encoding> {
        match self {
            Family::O200k => Some(Encoding::O200kBase),
            Family::Cl100k => Some(Encoding::Cl100kBase),
            _ => None,
        }
    }

    fn entry(self) -> Option<&'static Entry> {
        FAMILIES.iter().find(|entry| entry.family == self)
    }
}

/// Parts of a token in which costs are counted.
pub const UNITS_PER_TOKEN: u32 = 64;

/// What the pass over a text has summed up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    /// in 1/64 token
    cost: u64,
    /// of the ASCII characters, in 1/500
    register: i64,
    /// code points
    chars: u64,
}

/// Estimates for one family of tokenizers.
#[derive(Clone, Copy, Debug)]
pub struct Estimator {
    table: &'static Table,
    /// to count what repeats itself
    encoding: Option<Encoding>,
    scale: f64,
}

impl Estimator {
    /// Expands the table of the family if it is the first.
    #[must_use]
    pub fn new(family: Family) -> Estimator {
        static EMPTY: Table = Table::EMPTY;
        let table = |entry: &'static Entry| {
            entry.table.get_or_init(|| Packed::of(&entry.inflate()).map_or(Table::EMPTY, Table::new))
        };
        let table = family.entry().map_or(&EMPTY, table);
        Estimator { table, encoding: family.encoding(), scale: 1.0 }
    }

    /// For a model whose tokenizer is like the family's, but has so many times its tokens.
    #[must_use]
    pub fn times(self, scale: f64) -> Estimator {
        Estimator { scale: self.scale * scale, ..self }
    }

    /// What estimates are multiplied by.
    #[must_use]
    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// What a text costs in 1/64 token, a whole number. A text that repeats itself is counted with the vocabulary of the
    /// family, if that is in the package.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "positive, and far below 2^53"
    )]
    pub fn units(&self, text: Text) -> u64 {
        let tokens = self.counted(text).map_or_else(|| self.estimated(text), |tokens| tokens as f64);
        (tokens * self.scale * f64::from(UNITS_PER_TOKEN) + 0.5).floor() as u64
    }

    /// The exact count of a text that repeats itself, if there is a vocabulary.
    fn counted(&self, text: Text) -> Option<u64> {
        let encoding = self.encoding.filter(|_| repeats(text))?;
        Exact::new(encoding).map(|exact| exact.count(text))
    }

    /// The tokens of any text by the table.
    #[expect(clippy::cast_precision_loss, reason = "texts have far less than 2^53 characters")]
    fn estimated(&self, text: Text) -> f64 {
        let sums = self.sums(text);
        let tokens = self.tokens(&sums);
        if tokens * CHARS_OF_TOKEN < sums.chars as f64 { tokens.max(least_tokens(text)) } else { tokens }
    }

    /// The tokens of a text with these sums.
    #[expect(clippy::cast_precision_loss, reason = "sums of one text are far below 2^53")]
    fn tokens(&self, sums: &Sums) -> f64 {
        // the mean register of the text, drawn to 0 where the text is short: as if 100 neutral characters stood in it
        let register = sums.register as f64 / 500.0 / (sums.chars as f64 + 100.0);
        let correction = (self.table.offset + self.table.slope * register).clamp(-0.25, 0.25);
        sums.cost as f64 / f64::from(UNITS_PER_TOKEN) * correction.exp()
    }

    /// The pass over a text.
    fn sums(&self, text: Text) -> Sums {
        match text {
            Text::Ucs1(units) => self.walk(units),
            Text::Ucs2(units) => self.walk(units),
            Text::Ucs4(units) => self.walk(units),
            Text::Utf8(text) if text.is_ascii() => self.walk(text.as_bytes()),
            Text::Utf8(text) => self.walk(&text.chars().map(u32::from).collect::<Vec<u32>>()),
        }
    }

    fn walk<T: Copy + Into<u32>>(self, units: &[T]) -> Sums {
        self.table.slots().map_or(Sums::default(), |slots| pass::sums(units, slots))
    }
}

/// The fewest tokens of a text that repeats itself, which tables cannot see: they know neighbours only. Tokenizers have
/// tokens for so many equal characters: 16 line ends, 64 signs, 128 spaces; other text has no more than 12 characters a
/// token, whatever it says again.
#[expect(clippy::cast_precision_loss, reason = "counts of characters are far below 2^53")]
fn least_tokens(text: Text) -> f64 {
    let (mut spaces, mut line_ends, mut signs, mut others) = (0_u64, 0_u64, 0_u64, 0_u64);
    text.each_point(|point| match point {
        0x09 | 0x20 => spaces += 1,
        0x0A | 0x0D => line_ends += 1,
        0x21..=0x2F | 0x3A..=0x40 | 0x5B..=0x60 | 0x7B..=0x7E => signs += 1,
        _ => others += 1,
    });
    others as f64 / CHARS_OF_TOKEN + spaces as f64 / 128.0 + line_ends as f64 / 16.0 + signs as f64 / 64.0
}

/// Above this many characters a token, a text may repeat itself.
const CHARS_OF_TOKEN: f64 = 12.0;

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::blocks::{BLOCK, STRIDE};
    use super::pass::Pass;
    use super::tables::SLOTS;
    use super::*;
    use crate::dispatch::{Baseline, Kernel};

    /// Texts, and for each family their sums and tokens by an independent program.
    const VECTORS: &str = include_str!("../../../tests/vectors/estimates.json");

    fn points(text: &Value) -> Vec<u32> {
        match text {
            Value::String(text) => text.chars().map(u32::from).collect(),
            list => list
                .as_array()
                .unwrap()
                .iter()
                .map(|point| point.as_u64().unwrap().try_into().unwrap())
                .collect(),
        }
    }

    #[test]
    fn as_the_independent_program() {
        let vectors: Value = serde_json::from_str(VECTORS).unwrap();
        let mut checked = 0;
        for family in Family::all() {
            let estimator = Estimator::new(family);
            let expected = vectors["families"][family.name()].as_array().unwrap();
            for (text, expected) in vectors["texts"].as_array().unwrap().iter().zip(expected) {
                let sums = estimator.sums(Text::Ucs4(&points(text)));
                let found = (Some(sums.cost), Some(sums.register), Some(sums.chars));
                assert_eq!(
                    found,
                    (expected[0].as_u64(), expected[1].as_i64(), expected[2].as_u64()),
                    "{family:?} {text}"
                );
                assert!(
                    (estimator.tokens(&sums) - expected[3].as_f64().unwrap()).abs() < 1e-6,
                    "{family:?} {text}"
                );
                checked += 1;
            }
        }
        assert!(checked >= 270);
    }

    #[test]
    fn families_have_tables_and_names() {
        for family in Family::all() {
            assert_eq!(family.table().len(), PACKED, "{family:?}");
            assert_eq!(Family::named(family.name()), Some(family));
        }
        assert_eq!(Family::named("o200k_base"), None);
    }

    #[test]
    fn nothing_costs_nothing() {
        assert_eq!(Estimator::new(Family::O200k).units(Text::from("")), 0);
    }

    /// As the vocabulary has it, with the scale of the model; families without one keep to the table.
    #[test]
    fn what_repeats_itself_is_counted() {
        let text = "z".repeat(10_000);
        let text = Text::from(text.as_str());
        for (family, encoding) in
            [(Family::O200k, Encoding::O200kBase), (Family::Cl100k, Encoding::Cl100kBase)]
        {
            let tokens = Exact::new(encoding).unwrap().count(text);
            let estimator = Estimator::new(family);
            assert_eq!(estimator.units(text), tokens * u64::from(UNITS_PER_TOKEN));
            assert_eq!(estimator.times(1.5).units(text), tokens * u64::from(UNITS_PER_TOKEN) * 3 / 2);
        }
        assert!(Family::all().filter(|family| family.encoding().is_some()).count() == 2);
    }

    /// Between a token for each character, and one for 64, times what the correction can do.
    #[test]
    fn long_runs_stay_in_bounds() {
        let estimator = Estimator::new(Family::ClaudeV47);
        for unit in ["a", " ", "=", "中", "\u{10FFFF}", "\u{0}"] {
            let text = unit.repeat(10_000);
            let tokens = estimator.units(Text::from(text.as_str())) / u64::from(UNITS_PER_TOKEN);
            assert!((10..60_000).contains(&tokens), "{unit:?}: {tokens}");
        }
    }

    /// Compares the pass with its twin: in every storage that has room, compiled for the baseline and as dispatched.
    fn as_twin(points: &[u32]) {
        fn as_is<T: Copy + Into<u32>>(units: &[T], slots: &[u16; SLOTS]) -> [Sums; 2] {
            [Pass { units, slots }.run(Baseline), pass::sums(units, slots)]
        }
        let family = Family::ClaudeV3; // that with the widest range of costs
        let expected = [naive::sums(&Packed::of(family.table()).unwrap(), points); 2];
        let slots = Estimator::new(family).table.slots().unwrap();
        assert_eq!(as_is(points, slots), expected);
        if let Ok(units) = points.iter().map(|&point| u16::try_from(point)).collect::<Result<Vec<_>, _>>() {
            assert_eq!(as_is(&units, slots), expected);
        }
        if let Ok(units) = points.iter().map(|&point| u8::try_from(point)).collect::<Result<Vec<_>, _>>() {
            assert_eq!(as_is(&units, slots), expected);
        }
    }

    const PIECES: &str =
        "([ -~]{0,70}|[aAb9 \n_.]{0,40}|(a{9}|A{8}|9{8}| {8})|[\u{80}-\u{24ff}]{0,5}|\\PC{0,9}){0,9}";

    /// What makes a run of each kind, breaks it, or goes on with it.
    fn runs() -> impl Strategy<Value = Vec<u32>> {
        let kinds = [
            "a", "A", "7", " ", "_", "\n", "Ab", "aB", "é", "aé", "Éa", "\u{a0}", "я", "中", "カ", "—", "😀",
        ];
        let mixes = ["ASCII, 2 lines\n", "a–z ", "naïve Café", "да, конечно ", "中文。English "];
        prop::sample::select([&kinds[..], &mixes].concat())
            .prop_map(|text| text.chars().map(u32::from).collect())
    }

    /// Lengths around the borders of strides and blocks, and short ones.
    fn lengths() -> impl Strategy<Value = usize> {
        prop_oneof![
            0..12_usize,
            (1..5_usize, 0..5_usize).prop_map(|(strides, more)| strides * STRIDE - 2 + more),
            (1..3_usize, 0..19_usize).prop_map(|(blocks, more)| blocks * BLOCK - 9 + more),
        ]
    }

    /// Each character before, after and between all sorts of others.
    #[test]
    fn as_the_twin_on_every_character() {
        let all: Vec<u32> = (0..0x1_0100).collect();
        for chunk in all.chunks(16) {
            let each = chunk.iter().flat_map(|&point| {
                [
                    point, point, 0x61, point, 0x41, point, 0x35, point, 0x20, point, 0x4E00, point, 0x3B1,
                    point, 0x2014,
                ]
            });
            as_twin(&each.collect::<Vec<u32>>());
        }
    }

    /// A Rust string is the same text.
    #[test]
    fn utf8_is_a_storage_too() {
        let text = "naïve — “да”, 中文 and 😀, then ASCII for more than a stride of it.\n".repeat(9);
        let points: Vec<u32> = text.chars().map(u32::from).collect();
        for family in Family::all() {
            let estimator = Estimator::new(family);
            assert_eq!(estimator.sums(Text::from(text.as_str())), estimator.sums(Text::Ucs4(&points)));
            assert_eq!(
                estimator.sums(Text::Ucs4(&points)),
                naive::sums(&Packed::of(family.table()).unwrap(), &points)
            );
        }
    }

    proptest! {
        #[test]
        fn as_the_twin(text in PIECES) {
            as_twin(&text.chars().map(u32::from).collect::<Vec<u32>>());
        }

        #[test]
        fn as_the_twin_where_stretches_meet(stretches in prop::collection::vec((runs(), lengths()), 0..7)) {
            let points = stretches.iter().flat_map(|(run, len)| run.iter().cycle().take(*len)).copied();
            as_twin(&points.collect::<Vec<u32>>());
        }

        #[test]
        fn as_the_twin_where_few_are_not_ascii(text in prop::collection::vec(
            prop_oneof![9 => "[ -~\n]", 1 => "\\PC|[\u{80}-\u{ff}]|[—→é中я]"],
            0..600,
        )) {
            as_twin(&text.concat().chars().map(u32::from).collect::<Vec<u32>>());
        }

        #[test]
        fn any_number_is_a_character(points in prop::collection::vec(any::<u32>(), 0..50)) {
            as_twin(&points);
        }
    }
}
