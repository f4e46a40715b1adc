//! The members of a call's arguments that say what it is about: from JSON, or from wherever the caller has them.

use std::fmt;
use std::ops::Range;

use serde_core::de::{Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{Lines, digits};
use crate::text::Text;

/// The keys that are wanted; of several with the same meaning the first counts.
pub const KEYS: [&str; 27] = [
    // paths
    "file_path",
    "filePath",
    "absolute_path",
    "notebook_path",
    "path",
    "file",
    "filename",
    "file_name",
    "target_file",
    // commands
    "command",
    "cmd",
    // patterns
    "pattern",
    "query",
    "regex",
    // patches
    "input",
    "patch",
    "patchText",
    // lines of a file
    "offset",
    "line_offset",
    "limit",
    "n_lines",
    "start_line",
    "end_line",
    "view_range",
    // others
    "url",
    "website_url",
    "description",
];
pub(super) const PATH: Range<usize> = 0..9;
const COMMAND: Range<usize> = 9..11;
pub(super) const PATTERN: Range<usize> = 11..14;
const PATCH: Range<usize> = 14..17;
const OFFSET: Range<usize> = 17..19;
const LIMIT: Range<usize> = 19..21;
const START_LINE: Range<usize> = 21..22;
const END_LINE: Range<usize> = 22..23;
const VIEW_RANGE: usize = 23;
pub(super) const OTHER: Range<usize> = 24..27;

/// Characters of a name and of a value that are shown of other members.
const DETAIL: usize = 40;

/// A value of arguments, as far as it matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A text.
    Text(String),
    /// A whole number.
    Number(i64),
    /// A list.
    List(Vec<Value>),
    /// Nothing.
    Null,
    /// Anything else.
    Other,
}

/// What is wanted of a call's arguments.
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    values: Vec<(usize, Value)>,
    /// Members with other keys, in their order, where they are asked for.
    others: Vec<(String, Value)>,
    /// Arguments that are no JSON object.
    raw: Option<String>,
}

impl Arguments {
    /// Reads JSON. What is no object has no members.
    #[must_use]
    pub fn from_json(json: Text<'_>, members: Members) -> Self {
        let read = match json {
            Text::Ucs1(ascii) if ascii.is_ascii() => {
                members.read(serde_json::Deserializer::from_slice(ascii))
            }
            _ => members.read(serde_json::Deserializer::from_str(&json.as_well_formed())),
        };
        read.unwrap_or_else(|_| Self { raw: Some(json.to_well_formed()), ..Self::default() })
    }

    /// Sets the member with a key, given as its place in [`KEYS`]; the last one counts.
    pub fn set(&mut self, key: usize, value: Value) {
        self.values.retain(|&(known, _)| known != key);
        if value != Value::Null {
            self.values.push((key, value));
        }
    }

    /// Sets a member with another key; the last one counts.
    pub fn set_other(&mut self, key: String, value: Value) {
        match self.others.iter_mut().find(|(known, _)| *known == key) {
            Some((_, known)) => *known = value,
            None => self.others.push((key, value)),
        }
    }

    /// The first two other members that are a text or a number, as far as they are shown.
    pub(super) fn details(&self) -> Option<String> {
        let short = |text: &str| text.chars().take(DETAIL).collect::<String>();
        let shown = self.others.iter().filter_map(|(key, value)| match value {
            Value::Text(text) if !text.is_empty() => Some(format!("{}={}", short(key), short(text))),
            Value::Number(number) => Some(format!("{}={number}", short(key))),
            _ => None,
        });
        let details = shown.take(2).collect::<Vec<_>>().join(", ");
        (!details.is_empty()).then_some(details)
    }

    fn get(&self, key: usize) -> Option<&Value> {
        self.values.iter().find(|&&(known, _)| known == key).map(|(_, value)| value)
    }

    /// The first of some members that is a text.
    pub(super) fn text(&self, keys: Range<usize>) -> Option<String> {
        keys.filter_map(|key| self.get(key)).find_map(|value| match value {
            Value::Text(text) if !text.is_empty() => Some(text.clone()),
            _ => None,
        })
    }

    /// The command: a text, a list of words, or the script of a shell.
    pub(super) fn command(&self) -> Option<String> {
        COMMAND.filter_map(|key| self.get(key)).find_map(|value| match value {
            Value::Text(text) if !text.is_empty() => Some(text.clone()),
            Value::List(words) if !words.is_empty() => {
                let text =
                    |word: &Value| if let Value::Text(text) = word { Some(text.clone()) } else { None };
                let words = words.iter().map(text).collect::<Option<Vec<_>>>()?;
                match words.as_slice() {
                    [shell, option, script]
                        if ["bash", "sh", "zsh"].contains(&shell.as_str())
                            && ["-c", "-lc"].contains(&option.as_str()) =>
                    {
                        Some(script.clone())
                    }
                    words => Some(words.join(" ")),
                }
            }
            _ => None,
        })
    }

    /// A patch: a member, or all there is.
    pub(super) fn patch(&self) -> Option<String> {
        self.text(PATCH).or_else(|| self.raw.clone())
    }

    /// The lines that a read asks for.
    pub(super) fn lines(&self) -> Lines {
        let number = |keys: Range<usize>| keys.filter_map(|key| self.get(key)).find_map(number);
        let lines = |first: Option<i64>, last: Option<i64>| Lines {
            first: first.unwrap_or(1).max(1),
            last: last.filter(|&last| last > 0).unwrap_or(Lines::END),
        };
        if let Some(Value::List(view)) = self.get(VIEW_RANGE)
            && let [first, last] = view.as_slice()
        {
            return lines(self::number(first), self::number(last));
        }
        let (first, last) = (number(START_LINE), number(END_LINE));
        if first.is_some() || last.is_some() {
            return lines(first, last);
        }
        let first = number(OFFSET).unwrap_or(1).max(1);
        lines(Some(first), number(LIMIT).filter(|&limit| limit > 0).map(|limit| first + limit - 1))
    }
}

/// A whole number of at most nine digits, also one that is written as a text.
fn number(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) if number.unsigned_abs() < 1_000_000_000 => Some(*number),
        Value::Text(text) => digits(text),
        _ => None,
    }
}

/// Which members of arguments are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Members {
    /// Those with the keys of [`KEYS`].
    Known,
    /// All: of a tool that we do not know the first ones say what the call was about.
    All,
}

impl Members {
    fn read<'de>(
        self,
        mut json: serde_json::Deserializer<impl serde_json::de::Read<'de>>,
    ) -> serde_json::Result<Arguments> {
        let arguments = self.deserialize(&mut json)?;
        json.end()?;
        Ok(arguments)
    }
}

impl<'de> DeserializeSeed<'de> for Members {
    type Value = Arguments;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Arguments, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Members {
    type Value = Arguments;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Arguments, A::Error> {
        let mut arguments = Arguments::default();
        while let Some(key) = map.next_key_seed(KeyOf(self))? {
            match key {
                Key::Known(key) => arguments.set(key, map.next_value()?),
                Key::Other(key) => arguments.set_other(key, map.next_value()?),
                Key::Ignored => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(arguments)
    }
}

/// A key, as far as it is wanted.
enum Key {
    /// Its place in [`KEYS`].
    Known(usize),
    Other(String),
    Ignored,
}

struct KeyOf(Members);

impl<'de> DeserializeSeed<'de> for KeyOf {
    type Value = Key;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Key, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for KeyOf {
    type Value = Key;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Key, E> {
        Ok(match (KEYS.iter().position(|&known| known == key), self.0) {
            (Some(place), _) => Key::Known(place),
            (None, Members::All) => Key::Other(key.to_owned()),
            (None, Members::Known) => Key::Ignored,
        })
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any)
    }
}

struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.to_owned()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Number(number))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(i64::try_from(number).map_or(Value::Other, Value::Number))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Value, E> {
        Ok(Value::Other)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Value, E> {
        Ok(Value::Other)
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element()? {
            values.push(value);
        }
        Ok(Value::List(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        while map.next_entry::<Value, Value>()?.is_some() {}
        Ok(Value::Other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_json(json: &str) -> Arguments {
        Arguments::from_json(json.into(), Members::All)
    }

    #[test]
    fn details_are_the_first_members_that_can_be_shown() {
        let details = |json: &str| from_json(json).details();
        assert_eq!(details(r#"{"a": [1], "b": 7, "c": "x", "d": 1}"#).as_deref(), Some("b=7, c=x"));
        assert_eq!(details(r#"{"a": "", "path": "p", "b": true, "c": 1.5}"#), None);
        assert_eq!(details(r#"{"a": "x", "a": "y"}"#).as_deref(), Some("a=y"));
        let known = Arguments::from_json(r#"{"a": "x", "path": "p"}"#.into(), Members::Known);
        assert_eq!((known.details(), known.text(PATH).as_deref()), (None, Some("p")));
    }

    #[test]
    fn lines_are_asked_for_in_three_ways() {
        for (json, first, last) in [
            (r#"{"offset": 10, "limit": "5"}"#, 10, 14),
            (r#"{"offset": 0}"#, 1, Lines::END),
            (r#"{"view_range": [3, -1]}"#, 3, Lines::END),
            (r#"{"end_line": 7, "offset": 3}"#, 1, 7),
            (r#"{"limit": 1.0, "offset": true}"#, 1, Lines::END),
            ("{", 1, Lines::END),
        ] {
            assert_eq!(from_json(json).lines(), Lines { first, last }, "{json}");
        }
    }

    #[test]
    fn the_last_of_equal_keys_counts() {
        let arguments = from_json(r#"{"path": "a", "path": "b", "file": null}"#);
        assert_eq!(arguments.text(PATH).as_deref(), Some("b"));
        let arguments = from_json(r#"{"path": "a", "path": null}"#);
        assert_eq!(arguments.text(PATH), None);
    }

    #[test]
    fn commands_can_be_lists() {
        let command = |json: &str| from_json(json).command();
        assert_eq!(command(r#"{"cmd": ["ls", "-l"]}"#).as_deref(), Some("ls -l"));
        assert_eq!(command(r#"{"command": ["bash", "-lc", "cat f"]}"#).as_deref(), Some("cat f"));
        assert_eq!(command(r#"{"command": ["ls", 1]}"#), None);
        assert_eq!(command(r#"{"command": "ls"}x"#), None);
    }
}
