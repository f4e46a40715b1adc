//! Exact counts of ctxfast beside those of other crates, in one process: MB/s, and how many times the slowest that is.
//!
//! `exact-native CORPUS [CATEGORY...]`: CORPUS holds `text/CATEGORY.txt` and `short50.jsonl`, a JSON string a line.
//! Each counts the slices of a category in one go, CPU time, medians; none was seen before, and the first is not timed.
//! A `*` marks who counted a slice otherwise than `bpe-openai`, which is known to be exact.

use std::{env, error::Error, fs, hint::black_box, path::Path};

use cpu_time::ProcessTime;
use ctxfast::exact::{Encoding, Exact};

const CATEGORIES: [&str; 13] = [
    "prose_en",
    "python",
    "rust",
    "javascript",
    "json",
    "logs",
    "transcripts",
    "chinese",
    "japanese",
    "thai",
    "russian",
    "arabic",
    SHORT,
];
const SHORT: &str = "short";
const ENCODINGS: [Encoding; 2] = [Encoding::O200kBase, Encoding::Cl100kBase];
const ROUNDS: usize = 7;
const LONGEST: usize = 512 * 1024; // characters of a slice
const STRINGS: usize = 2_000; // short ones of a slice

/// Names a crate, and counts the tokens of a text.
struct Counter {
    name: &'static str,
    count: Box<dyn Fn(&str) -> usize>,
}

/// How fast a counter was in a category, in MB/s.
struct Speed {
    median: f64,
    differs: bool,
}

fn counters(encoding: Encoding) -> Result<Vec<Counter>, Box<dyn Error>> {
    let name = encoding.name();
    let exact = Exact::new(encoding).ok_or("no vocabulary")?;
    let openai = if name == "o200k_base" { bpe_openai::o200k_base } else { bpe_openai::cl100k_base }();
    let tiktoken = tiktoken::get_encoding(name).ok_or("tiktoken does not know the encoding")?;
    let toktok = toktok::Tokenizer::builtin(name)?;
    Ok(vec![
        Counter { name: "bpe-openai", count: Box::new(|text| openai.count(text)) },
        Counter { name: "toktok-rs", count: Box::new(move |text| toktok.count(text.as_bytes())) },
        Counter { name: "tiktoken (goliajp)", count: Box::new(|text| tiktoken.count(text)) },
        Counter {
            name: "ctxfast",
            count: Box::new(move |text| usize::try_from(exact.count(text.into())).unwrap_or(usize::MAX)),
        },
    ])
}

/// The slices of a category; each is one text, or the short strings that are counted one by one.
fn slices(corpus: &Path, category: &str) -> Result<Vec<Vec<String>>, Box<dyn Error>> {
    if category == SHORT {
        let lines = fs::read_to_string(corpus.join("short50.jsonl"))?;
        let strings: Vec<String> = lines.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
        return Ok(strings.chunks_exact(STRINGS).take(ROUNDS + 1).map(<[String]>::to_vec).collect());
    }
    let text = fs::read_to_string(corpus.join("text").join(format!("{category}.txt")))?;
    let length = (text.chars().count() / (ROUNDS + 1)).clamp(1, LONGEST);
    let mut chars = text.chars();
    Ok((0..=ROUNDS).map(|_| vec![chars.by_ref().take(length).collect()]).collect())
}

/// The first counter is the one that the others are compared with.
fn measure(counters: &[Counter], slices: &[Vec<String>]) -> Vec<Speed> {
    let mut expected = None;
    let mut speeds = Vec::new();
    for counter in counters {
        let mut rates = Vec::new();
        let mut counts = Vec::new();
        for slice in slices {
            let bytes: usize = slice.iter().map(String::len).sum();
            let start = ProcessTime::now();
            counts.extend(slice.iter().map(|text| (counter.count)(black_box(text))));
            rates.push(bytes as f64 / start.elapsed().as_secs_f64() / 1e6);
        }
        let differs = *expected.get_or_insert_with(|| counts.clone()) != counts;
        speeds.push(Speed { median: median(rates.split_off(1)), differs });
    }
    speeds
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn cell(speed: &Speed, slowest: f64) -> String {
    let mark = if speed.differs { "*" } else { "" };
    format!("{:.0} ({:.1} x){mark}", speed.median, speed.median / slowest)
}

/// The geometric mean over the categories, the short strings left out.
fn mean(of: &[(&str, Vec<Speed>)], place: usize) -> Speed {
    let long: Vec<&Speed> =
        of.iter().filter(|(name, _)| *name != SHORT).map(|(_, all)| &all[place]).collect();
    let logs: f64 = long.iter().map(|speed| speed.median.ln()).sum();
    Speed { median: (logs / long.len().max(1) as f64).exp(), differs: long.iter().any(|speed| speed.differs) }
}

fn slowest<'a>(speeds: impl IntoIterator<Item = &'a Speed>) -> f64 {
    speeds.into_iter().map(|speed| speed.median).fold(f64::INFINITY, f64::min)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let corpus = arguments.next().ok_or("usage: exact-native CORPUS [CATEGORY...]")?;
    let wanted: Vec<String> = arguments.collect();
    let wanted = |name: &&str| wanted.is_empty() || wanted.iter().any(|category| category == name);
    let categories: Vec<&str> = CATEGORIES.into_iter().filter(wanted).collect();
    for encoding in ENCODINGS {
        let counters = counters(encoding)?;
        let mut found = Vec::new();
        for &category in &categories {
            found.push((category, measure(&counters, &slices(corpus.as_ref(), category)?)));
        }
        let means: Vec<Speed> = (0..counters.len()).map(|place| mean(&found, place)).collect();
        println!("\n{}, MB/s\n\n| | {} | mean |", encoding.name(), categories.join(" | "));
        println!("| --- |{}", " ---: |".repeat(categories.len() + 1));
        for (place, counter) in counters.iter().enumerate() {
            let mut cells: Vec<String> =
                found.iter().map(|(_, all)| cell(&all[place], slowest(all))).collect();
            cells.push(cell(&means[place], slowest(&means)));
            println!("| {} | {} |", counter.name, cells.join(" | "));
        }
    }
    Ok(())
}
