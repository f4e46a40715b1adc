//! A vocabulary from a `.tiktoken` file: a line for each token, its bytes as base64 and its rank.
//!
//! A token of several bytes is made by merging two of lower rank: which two is found by merging its bytes with the ranks
//! below. A few of some vocabularies cannot be made so. Those are tokens where they are a whole piece, or (`odd`) where
//! tokens of higher rank make them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hashbrown::HashMap;

use super::FileError;
use super::merge::Merger;
use super::odd::{Odd, Pairs};
use super::vocab::{BYTES, Builder, LONGEST, RANKS, Vocab};

/// Pairs of a vocabulary that needs them all, at most; known ones have some 300,000.
const MOST_PAIRS: usize = 1 << 22;

type Token = Box<[u8]>;

/// The vocabulary of these tokens, which are in the order of their ranks.
pub(super) fn ranked(tokens: &[Token]) -> Result<Vocab, FileError> {
    let refuse = |rank: usize, expected: &str, got: &str| {
        Err(FileError(format!("rank {rank}: expected {expected}, got {got}")))
    };
    let mut bytes = Vec::new();
    for (rank, token) in tokens.iter().enumerate().take(BYTES as usize) {
        match **token {
            [byte] if !bytes.contains(&byte) => bytes.push(byte),
            [byte] => return refuse(rank, "the 256 single bytes before others", &format!("{byte} again")),
            _ => {
                return refuse(rank, "the 256 single bytes before others", &format!("{} bytes", token.len()));
            }
        }
    }
    let builder = bytes.first_chunk().and_then(|bytes| Builder::new(bytes, tokens.len()));
    let mut builder = builder
        .ok_or_else(|| FileError(format!("expected the 256 single bytes, got {} tokens", tokens.len())))?;
    let mut merger = Merger::default();
    for (rank, token) in tokens.iter().enumerate().skip(BYTES as usize) {
        if rank >= RANKS as usize {
            return refuse(rank, &format!("at most {RANKS} tokens"), "more");
        }
        if !(2..=LONGEST).contains(&token.len()) {
            return refuse(rank, &format!("2 to {LONGEST} bytes"), &token.len().to_string());
        }
        let is_new = match *merger.tokens(&builder.vocab, token) {
            [_] => false,
            [one, two] => builder.add(one, two).is_some(),
            _ => builder.vocab.add_unmerged(token),
        };
        if !is_new {
            let got = format!("b\"{}\"", token.escape_ascii());
            return refuse(rank, "a token that is not there already", &got);
        }
    }
    let mut vocab = builder.vocab;
    let mut odd = Vec::new();
    for token in tokens.iter().filter(|token| vocab.is_unmerged(token)) {
        match merger.tokens(&vocab, token).len() {
            ..2 => {
                return refuse(
                    tokens.len(),
                    "each token once",
                    &format!("b\"{}\" again", token.escape_ascii()),
                );
            }
            2 => odd.push(token.clone()),
            _ => {}
        }
    }
    if !odd.is_empty() {
        vocab.odd = Odd::new(&odd, pairs(tokens)?);
    }
    Ok(vocab)
}

/// All pairs of tokens that make a token, by its rank.
fn pairs(tokens: &[Token]) -> Result<Pairs, FileError> {
    let number = |(rank, token): (u32, &Token)| match **token {
        [byte] => u32::from(byte),
        _ => rank,
    };
    let numbers: HashMap<&[u8], u32> =
        (0..).zip(tokens).map(|(rank, token)| (&**token, number((rank, token)))).collect();
    let mut pairs = Pairs::new();
    for (rank, token) in (0..).zip(tokens) {
        if pairs.len() > MOST_PAIRS {
            return Err(FileError(format!(
                "expected at most {MOST_PAIRS} pairs of tokens that make one, got more"
            )));
        }
        for cut in 1..token.len() {
            let (one, two) = token.split_at_checked(cut).unwrap_or_default();
            if let (Some(&one), Some(&two)) = (numbers.get(one), numbers.get(two)) {
                pairs.insert((one, two), (rank, rank));
            }
        }
    }
    Ok(pairs)
}

/// Reads a file.
pub(super) fn vocabulary(file: &[u8]) -> Result<Vocab, FileError> {
    let mut tokens: Vec<Token> = Vec::new();
    let lines = file.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).zip(1_usize..);
    for (line, number) in lines.filter(|(line, _)| !line.is_empty()) {
        let refuse = |expected: &str| {
            let got = String::from_utf8_lossy(line.get(..80).unwrap_or(line));
            FileError(format!("line {number}: expected {expected}, got {got:?}"))
        };
        let (token, rank) =
            token_and_rank(line).ok_or_else(|| refuse("a token as base64, a space and a rank"))?;
        if rank != tokens.len() as u64 {
            return Err(refuse(&format!("rank {}", tokens.len())));
        }
        if tokens.len() == RANKS as usize {
            return Err(refuse(&format!("at most {RANKS} tokens")));
        }
        tokens.push(token.into());
    }
    ranked(&tokens)
}

fn token_and_rank(line: &[u8]) -> Option<(Vec<u8>, u64)> {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let (token, rank, None) = (words.next()?, words.next()?, words.next()) else { return None };
    if !rank.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some((STANDARD.decode(token).ok()?, std::str::from_utf8(rank).ok()?.parse().ok()?))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A file of the 256 bytes and these tokens.
    pub(crate) fn file(tokens: &[&str]) -> String {
        let bytes = (0..=255).map(|byte| vec![byte]);
        let tokens = bytes.chain(tokens.iter().map(|token| token.as_bytes().to_vec()));
        let lines =
            tokens.zip(0..).map(|(token, rank)| [STANDARD.encode(token), format!(" {rank}\n")].concat());
        lines.collect()
    }

    #[test]
    fn tokens_are_made_of_two_or_are_a_whole_piece() {
        let vocab = vocabulary(file(&["ab", "cd", "abcd", "xyz"]).as_bytes()).unwrap();
        assert_eq!(vocab.longest, 4);
        assert_eq!(vocab.naive(b"abcd").len(), 1);
        assert_eq!(vocab.naive(b"xyz").len(), 3);
        assert!(vocab.is_unmerged(b"xyz"));
    }

    #[test]
    fn files_that_are_none_are_refused() {
        let of = |file: &str| vocabulary(file.as_bytes()).unwrap_err().to_string();
        assert_eq!(of(""), "expected the 256 single bytes, got 0 tokens");
        assert_eq!(
            of("AA== 0\n\n!!! 1\n"),
            r#"line 3: expected a token as base64, a space and a rank, got "!!! 1""#
        );
        assert_eq!(of("AA== 0\r\nAQ== 2\n"), r#"line 2: expected rank 1, got "AQ== 2""#);
        assert_eq!(of("AA== 99999999999999999999\n").matches("a rank, got").count(), 1);
        assert_eq!(of("AAA= 0"), "rank 0: expected the 256 single bytes before others, got 2 bytes");
        assert_eq!(of("AA== 0\nAA== 1"), "rank 1: expected the 256 single bytes before others, got 0 again");
        for twice in ["ab", "xyz"] {
            assert_eq!(
                of(&file(&[twice, twice])),
                format!("rank 257: expected a token that is not there already, got b\"{twice}\"")
            );
        }
        assert_eq!(of(&file(&["a"])), "rank 256: expected 2 to 1024 bytes, got 1");
    }

    #[test]
    fn tokens_can_be_made_of_tokens_of_higher_rank() {
        let vocab = vocabulary(file(&["aba", "ab", "xyz"]).as_bytes()).unwrap();
        let odd = vocab.odd.unwrap();
        // the first ab takes the a that the second one would be made of
        assert_eq!(odd.count(b"abab"), Some(2));
        assert_eq!(odd.count(b"xyz"), None);
    }

    #[test]
    fn tables_of_any_size_can_be_searched() {
        let words: Vec<String> = (0..40_000_u32).map(|number| format!("{number:05}")).collect();
        let parts: Vec<String> =
            (10..1000).map(|number| format!("{number:02}")).filter(|part| part.len() == 2).collect();
        for more in [0, 1, 2, 3, 7, 32_768 - 256 - parts.len(), 32_900] {
            let tokens: Vec<&str> =
                parts.iter().chain(&words).take(parts.len() + more).map(String::as_str).collect();
            let vocab = vocabulary(file(&tokens).as_bytes()).unwrap();
            assert_eq!(vocab.naive(b"xy").len(), 2);
            assert_eq!(vocab.naive(b"12").len(), 1);
        }
    }
}
