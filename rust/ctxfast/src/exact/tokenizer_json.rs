//! A vocabulary from a `tokenizer.json`, as Hugging Face's tokenizers write it, or from Mistral's `tekken.json`.
//!
//! Such a file says which two tokens make one, in the order of merging, and may say it of the same token several times.
//! The bytes of a token meet in one way only: as what earlier merges make of them. So of its merges one at most ever
//! happens, and the others are dropped. One that comes before those that make its two tokens happens as soon as these are
//! made, if the whole was not made before (`odd`). Everything that is not known here is refused.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hashbrown::HashMap;
use serde_core::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::FileError;
use super::odd::{Odd, Pairs};
use super::patterns::Split;
use super::tiktoken_file::ranked;
use super::vocab::{BYTES, Builder, LONGEST, NONE, RANKS, Vocab};

/// What a file says.
pub(super) struct Tokenizer {
    pub(super) vocab: Vocab,
    pub(super) split: Split,
    /// Whether texts are put into Unicode's normal form C.
    pub(super) nfc: bool,
    /// Special tokens, and whether they are looked for in the normal form.
    pub(super) special: Vec<(String, bool)>,
}

type Result<T> = std::result::Result<T, FileError>;

/// Members of an object, and elements of a list, at most.
const MOST: usize = 1 << 21;

/// Bytes of a part of a file that is small, at most.
const SMALL: usize = 1 << 20;

/// Characters of the file that an error shows.
const SHOWN: usize = 400;

/// Reads a file; its special tokens, if they are wanted.
pub(super) fn read(file: &[u8], wants_special: bool) -> Result<Tokenizer> {
    let json = std::str::from_utf8(file).map_err(|error| expected("JSON in UTF-8", &error.to_string()))?;
    let [model, pre_tokenizer, normalizer, added, config, vocab, special] = members(
        json,
        ["model", "pre_tokenizer", "normalizer", "added_tokens", "config", "vocab", "special_tokens"],
    )?;
    if let (None, Some(config), Some(vocab)) = (model, config, vocab) {
        return tekken(config, vocab, special, wants_special);
    }
    let Some(model) = model else { return Err(FileError("expected `model`, got none".to_owned())) };
    let split = split(pre_tokenizer).map_err(|error| error.at("pre_tokenizer"))?;
    let nfc = is_nfc(normalizer).map_err(|error| error.at("normalizer"))?;
    let special = match added {
        Some(added) if wants_special => added_tokens(added)?,
        _ => Vec::new(),
    };
    let vocab = bpe(model).map_err(|error| error.at("model"))?;
    Ok(Tokenizer { vocab, split, nfc, special })
}

/// The split pattern of a Split by one that is known, then `ByteLevel`.
fn split(pre_tokenizer: Option<&RawValue>) -> Result<Split> {
    const EXPECTED: &str =
        "a Sequence of a Split and a ByteLevel without a pattern of its own and without a prefix";
    let value = small(pre_tokenizer)?;
    let is = |value: &Value, key: &str, expected: Value| value.get(key) == Some(&expected);
    let steps = value.get("pretokenizers").and_then(Value::as_array).map(Vec::as_slice);
    let Some([split, bytes]) = steps.filter(|_| is(&value, "type", "Sequence".into())) else {
        return Err(expected(EXPECTED, &value.to_string()));
    };
    let behavior =
        (split.get("behavior").and_then(Value::as_str), split.get("invert").and_then(Value::as_bool));
    if !is(split, "type", "Split".into())
        || !is(bytes, "type", "ByteLevel".into())
        || !is(bytes, "add_prefix_space", false.into())
        || !is(bytes, "use_regex", false.into())
        // all of a text matches, so these are the same
        || !matches!(behavior, (Some("Isolated"), Some(false)) | (Some("Removed"), Some(true)))
    {
        return Err(expected(EXPECTED, &value.to_string()));
    }
    let pattern = split.get("pattern").unwrap_or(&Value::Null);
    let known = pattern.get("Regex").and_then(Value::as_str).and_then(Split::of_regex);
    known.ok_or_else(|| {
        expected("the pattern of llama3, qwen2, o200k or tekken", &pattern.to_string())
            .at("pretokenizers[0].pattern")
    })
}

fn is_nfc(normalizer: Option<&RawValue>) -> Result<bool> {
    fn of(value: &Value) -> Option<bool> {
        if value.is_null() {
            return Some(false);
        }
        match value.get("type")?.as_str()? {
            "NFC" => Some(true),
            "Sequence" => value
                .get("normalizers")?
                .as_array()?
                .iter()
                .try_fold(false, |nfc, step| Some(nfc | of(step)?)),
            _ => None,
        }
    }
    let value = small(normalizer)?;
    of(&value).ok_or_else(|| expected("null or NFC", &value.to_string()))
}

fn added_tokens(added: &RawValue) -> Result<Vec<(String, bool)>> {
    let mut special = Vec::new();
    for (index, added) in list(added).map_err(|error| error.at("added_tokens"))?.into_iter().enumerate() {
        let token = || -> Result<(String, bool)> {
            let token = small(Some(added))?;
            for flag in ["single_word", "lstrip", "rstrip"] {
                let value = token.get(flag).unwrap_or(&Value::Bool(false));
                if value != false {
                    return Err(expected("false", &value.to_string()).at(flag));
                }
            }
            let content = token.get("content").and_then(Value::as_str);
            let content = content.ok_or_else(|| expected("a token with `content`", added.get()))?;
            let normalized = token.get("normalized").and_then(Value::as_bool);
            let normalized = normalized.ok_or_else(|| expected("a token with `normalized`", added.get()))?;
            Ok((content.to_owned(), normalized))
        };
        special.push(token().map_err(|error| error.at(&format!("added_tokens[{index}]")))?);
    }
    Ok(special)
}

/// The vocabulary of a model.
fn bpe(model: &RawValue) -> Result<Vocab> {
    let [kind, vocab, merges, dropout, prefix, suffix, ignore_merges] = members(
        model.get(),
        [
            "type",
            "vocab",
            "merges",
            "dropout",
            "continuing_subword_prefix",
            "end_of_word_suffix",
            "ignore_merges",
        ],
    )?;
    let only = |name: &str, member: Option<&RawValue>, values: &[Value]| -> Result<Value> {
        let value = small(member).map_err(|error| error.at(name))?;
        if values.contains(&value) {
            return Ok(value);
        }
        let values: Vec<String> = values.iter().map(Value::to_string).collect();
        Err(expected(&values.join(" or "), &value.to_string()).at(name))
    };
    let none = [Value::Null, "".into()];
    only("type", kind, &["BPE".into()])?;
    only("dropout", dropout, &[Value::Null, 0.into(), 0.0.into()])?;
    only("continuing_subword_prefix", prefix, &none)?;
    only("end_of_word_suffix", suffix, &none)?;
    let ignore_merges = only("ignore_merges", ignore_merges, &[false.into(), true.into(), Value::Null])?;

    let vocab = vocab.ok_or_else(|| expected("`vocab`", "none"))?;
    let mut made = made(vocab).map_err(|error| error.at("vocab"))?;
    let merges = merges.ok_or_else(|| expected("`merges`", "none"))?;
    let merges = list(merges).map_err(|error| error.at("merges"))?;
    let mut vocab = merged(&mut made, &merges)?;
    if ignore_merges == true {
        for (token, _) in made.iter().filter(|&(_, &rank)| rank == NONE) {
            let Some(bytes) = token.chars().map(byte_of).collect::<Option<Vec<u8>>>() else { continue };
            if bytes.len() > LONGEST {
                return Err(expected(&format!("tokens of at most {LONGEST} bytes"), token).at("vocab"));
            }
            if !bytes.is_empty() {
                vocab.add_unmerged(&bytes);
            }
        }
    }
    Ok(vocab)
}

/// The tokens of a vocabulary as they are written, by which rank they are made: at first, only the bytes.
type Made = HashMap<Box<str>, u32>;

fn made(vocab: &RawValue) -> Result<Made> {
    let mut json = serde_json::Deserializer::from_str(vocab.get());
    let mut made = Tokens.deserialize(&mut json).map_err(syntax)?;
    for (rank, char) in (0..).zip(alphabet()) {
        match made.get_mut(char.encode_utf8(&mut [0; 4]) as &str) {
            Some(byte) => *byte = rank,
            None => {
                return Err(expected("a token for each byte", &format!("none for {char:?} (byte {rank})")));
            }
        }
    }
    Ok(made)
}

/// Does merges, in their order.
fn merged(made: &mut Made, merges: &[&RawValue]) -> Result<Vocab> {
    let bytes = std::array::from_fn(|byte| byte.to_le_bytes()[0]);
    let tokens = merges.len().min(made.len()).min(RANKS as usize);
    let mut builder = Builder::new(&bytes, tokens).ok_or_else(|| expected("a vocabulary", "none"))?;
    // that come before a token of theirs is made
    let mut early = Vec::new();
    let mut next = BYTES;
    for (index, merge) in merges.iter().enumerate() {
        let Some([one, two, whole]) = tokens_of(index, merge)? else { continue };
        let refuse = |what: &str| expected(what, merge.get()).at(&format!("merges[{index}]"));
        let rank = |token: &String| made.get(&**token).copied();
        let (Some(one_made), Some(two_made), Some(whole_made)) = (rank(&one), rank(&two), rank(&whole))
        else {
            return Err(refuse("two tokens of `vocab` that make one of it"));
        };
        if one_made == NONE || two_made == NONE {
            early.push([one, two, whole]);
        } else if builder.vocab.pair(one_made, two_made) != NONE {
            return Err(refuse("each merge once")); // the last one would count
        } else if builder.vocab.can_be_neighbours(one_made, two_made) {
            if whole_made != NONE {
                return Err(refuse("a token that no earlier merge makes"));
            }
            builder.add(one_made, two_made).ok_or_else(|| {
                refuse(&format!("a token of at most {LONGEST} bytes, and at most {RANKS} tokens"))
            })?;
            made.insert(whole.into(), next);
            next += 1;
        }
    }
    let mut vocab = builder.vocab;
    let mut odd = Vec::new();
    for [one, two, whole] in &early {
        let [one, two, whole_made] =
            [one, two, whole].map(|token| made.get(&**token).copied().unwrap_or(NONE));
        if one != NONE && two != NONE && whole_made == NONE && vocab.can_be_neighbours(one, two) {
            let bytes: Option<Vec<u8>> = whole.chars().map(byte_of).collect();
            odd.extend(bytes.map(Vec::into_boxed_slice));
        }
    }
    if !odd.is_empty() {
        vocab.odd = Odd::new(&odd, pairs(made, merges)?);
    }
    Ok(vocab)
}

/// All merges, by their number.
fn pairs(made: &Made, merges: &[&RawValue]) -> Result<Pairs> {
    let mut numbers: HashMap<&str, u32> =
        (BYTES..).zip(made.keys()).map(|(number, token)| (&**token, number)).collect();
    for (token, &rank) in made.iter().filter(|&(_, &rank)| rank < BYTES) {
        numbers.insert(token, rank);
    }
    let mut pairs = Pairs::new();
    for (index, rank) in (0..merges.len()).zip(0..) {
        let Some(tokens) = merges.get(index).map(|merge| tokens_of(index, merge)).transpose()?.flatten()
        else {
            continue;
        };
        if let [Some(&one), Some(&two), Some(&whole)] = tokens.each_ref().map(|token| numbers.get(&**token)) {
            pairs.insert((one, two), (rank, whole));
        }
    }
    Ok(pairs)
}

/// The two tokens of a merge, and the one that they make; nothing for a comment.
fn tokens_of(index: usize, merge: &RawValue) -> Result<Option<[String; 3]>> {
    if merge.get().starts_with("\"#version") {
        return Ok(None);
    }
    let tokens = pair(merge.get()).map(|(one, two)| {
        let whole = one.clone() + &two;
        [one, two, whole]
    });
    let refuse = || expected("two tokens", merge.get()).at(&format!("merges[{index}]"));
    tokens.map(Some).ok_or_else(refuse)
}

/// `"a b"` or `["a", "b"]`
fn pair(merge: &str) -> Option<(String, String)> {
    if merge.starts_with('[') {
        return serde_json::from_str(merge).ok();
    }
    let merge: String = serde_json::from_str(merge).ok()?;
    let (one, two) = merge.split_once(' ')?;
    (!two.contains(' ')).then(|| (one.to_owned(), two.to_owned()))
}

/// Mistral's form: ranks, as tiktoken has them.
fn tekken(
    config: &RawValue,
    vocab: &RawValue,
    special: Option<&RawValue>,
    wants_special: bool,
) -> Result<Tokenizer> {
    let config = small(Some(config)).map_err(|error| error.at("config"))?;
    let pattern = config.get("pattern").unwrap_or(&Value::Null);
    let split = pattern.as_str().and_then(Split::of_regex).ok_or_else(|| {
        expected("the pattern of llama3, qwen2, o200k or tekken", &pattern.to_string()).at("config.pattern")
    })?;
    let number = |key: &str| {
        let value = config.get(key).unwrap_or(&Value::Null);
        let number = value.as_u64().and_then(|number| usize::try_from(number).ok());
        number.ok_or_else(|| expected("a number", &value.to_string()).at(&format!("config.{key}")))
    };
    let (all, not_ordinary) = (number("default_vocab_size")?, number("default_num_special_tokens")?);
    let entries = list(vocab).map_err(|error| error.at("vocab"))?;
    let ordinary = all.checked_sub(not_ordinary).and_then(|ordinary| entries.get(..ordinary));
    let ordinary = ordinary.ok_or_else(|| {
        let expects = format!("{all} less {not_ordinary} tokens");
        expected(&expects, &entries.len().to_string()).at("vocab")
    })?;
    let mut tokens = Vec::new();
    for (rank, entry) in ordinary.iter().enumerate() {
        let token = || -> Result<Box<[u8]>> {
            let entry = small(Some(entry))?;
            let value = entry.get("rank").unwrap_or(&Value::Null);
            if value.as_u64() != Some(rank as u64) {
                return Err(expected(&rank.to_string(), &value.to_string()).at("rank"));
            }
            let value = entry.get("token_bytes").unwrap_or(&Value::Null);
            let token = value.as_str().and_then(|token| STANDARD.decode(token).ok());
            Ok(token.ok_or_else(|| expected("base64", &value.to_string()).at("token_bytes"))?.into())
        };
        tokens.push(token().map_err(|error| error.at(&format!("vocab[{rank}]")))?);
    }
    let vocab = ranked(&tokens).map_err(|error| error.at("vocab"))?;
    let mut special_tokens = Vec::new();
    if wants_special {
        let value = small(special).map_err(|error| error.at("special_tokens"))?;
        let list =
            value.as_array().ok_or_else(|| expected("a list", &value.to_string()).at("special_tokens"))?;
        for (index, token) in list.iter().enumerate() {
            let content = token.get("token_str").and_then(Value::as_str).ok_or_else(|| {
                let error = expected("a token with `token_str`", &token.to_string());
                error.at(&format!("special_tokens[{index}]"))
            })?;
            special_tokens.push((content.to_owned(), false));
        }
    }
    Ok(Tokenizer { vocab, split, nfc: false, special: special_tokens })
}

fn expected(what: &str, got: &str) -> FileError {
    let short: String = got.chars().take(SHOWN).collect();
    let more = if short.len() < got.len() { "..." } else { "" };
    FileError(format!("expected {what}, got {short}{more}"))
}

#[expect(clippy::needless_pass_by_value, reason = "as map_err gives it")]
fn syntax(error: serde_json::Error) -> FileError {
    expected("JSON", &error.to_string())
}

/// A part of a file that is small, as a value; null if it is not there.
fn small(json: Option<&RawValue>) -> Result<Value> {
    match json {
        None => Ok(Value::Null),
        Some(json) if json.get().len() > SMALL => {
            Err(expected(&format!("at most {SMALL} bytes"), &json.get().len().to_string()))
        }
        Some(json) => serde_json::from_str(json.get()).map_err(syntax),
    }
}

/// The members of an object that have these names, as they are written.
fn members<'j, const N: usize>(json: &'j str, names: [&'static str; N]) -> Result<[Option<&'j RawValue>; N]> {
    let mut json = serde_json::Deserializer::from_str(json);
    let found = Members(names).deserialize(&mut json).map_err(syntax)?;
    json.end().map_err(syntax)?;
    Ok(found)
}

/// The elements of a list, as they are written.
fn list(json: &RawValue) -> Result<Vec<&RawValue>> {
    List.deserialize(&mut serde_json::Deserializer::from_str(json.get())).map_err(syntax)
}

struct Members<const N: usize>([&'static str; N]);

impl<'de, const N: usize> DeserializeSeed<'de> for Members<N> {
    type Value = [Option<&'de RawValue>; N];

    fn deserialize<D: Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> std::result::Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, const N: usize> Visitor<'de> for Members<N> {
    type Value = [Option<&'de RawValue>; N];

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Self::Value, A::Error> {
        let mut found = [None; N];
        while let Some(key) = map.next_key::<String>()? {
            let mut places = self.0.iter().zip(&mut found);
            match places.find(|(name, _)| **name == key) {
                Some((_, Some(_))) => return Err(A::Error::custom(format!("`{key}` twice"))),
                Some((_, place)) => *place = Some(map.next_value()?),
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(found)
    }
}

struct List;

impl<'de> DeserializeSeed<'de> for List {
    type Value = Vec<&'de RawValue>;

    fn deserialize<D: Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> std::result::Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for List {
    type Value = Vec<&'de RawValue>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> std::result::Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some(element) = seq.next_element()? {
            if list.len() == MOST {
                return Err(A::Error::custom(format!("more than {MOST} elements")));
            }
            list.push(element);
        }
        Ok(list)
    }
}

struct Tokens;

impl<'de> DeserializeSeed<'de> for Tokens {
    type Value = Made;

    fn deserialize<D: Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> std::result::Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Tokens {
    type Value = Made;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object of tokens and their ids")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Self::Value, A::Error> {
        let mut made = Made::new();
        while let Some((token, _)) = map.next_entry::<Box<str>, u32>()? {
            if made.len() == MOST {
                return Err(A::Error::custom(format!("more than {MOST} tokens")));
            }
            made.insert(token, NONE);
        }
        Ok(made)
    }
}

/// The characters that bytes are written as: those that can be seen as themselves, the others from U+0100 on.
fn alphabet() -> impl Iterator<Item = char> {
    let mut other = 0x100..;
    (0..=u8::MAX).map(move |byte| match byte {
        b'!'..=b'~' | 0xA1..=0xAC | 0xAE.. => char::from(byte),
        _ => other.next().and_then(char::from_u32).unwrap_or_default(),
    })
}

/// The byte that a character stands for.
fn byte_of(char: char) -> Option<u8> {
    alphabet().zip(0..=u8::MAX).find(|&(own, _)| own == char).map(|(_, byte)| byte)
}
