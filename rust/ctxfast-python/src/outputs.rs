//! The tool outputs of a list, read when the core asks for them, and what is written in their place.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use ctxfast::pairs::{End, Pairs};
use ctxfast::part::Kind as Piece;
use ctxfast::plan::{Facts, Reason, Replacement, Stub};
use ctxfast::prune::{Output, Source};
use ctxfast::stub::{LONGEST_ID, Old, Remark, is_stub, stub, with_id};
use ctxfast::tools::{Arguments, Call, Tool, begins_as_failure, exit_code, members_of};
use ctxfast::transcript::{Kind, Transcript};
use ctxfast::truncate::{Keep, Limits, Saved, Totals, cut_known, marker};
use memchr::memchr;
use memchr::memmem::{Finder, find};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyList, PyString};

use crate::counter::TokenCounter;
use crate::errors::{At, Error, Read, parameter_type_error};
use crate::memory::{chars, one_byte_text, view};
use crate::policy::Policy;
use crate::pruned::{Edit, Report};
use crate::read::json::{self, Keys};
use crate::read::{self, Called, Items, Visit, fields};
use crate::write;

/// Something that keeps texts.
pub(crate) struct Store<'py> {
    save: Bound<'py, PyAny>,
}

impl<'py> Store<'py> {
    /// By its method `save(text) -> id`.
    pub(crate) fn new(store: &Bound<'py, PyAny>) -> PyResult<Self> {
        match store.getattr_opt(intern!(store.py(), "save"))? {
            Some(save) if save.is_callable() => Ok(Self { save }),
            _ => Err(parameter_type_error("store", "something with a method save(text) -> id", store)),
        }
    }

    /// Saves a text; gives its id, or none if it could not be saved.
    pub(crate) fn save(&self, text: Bound<'py, PyString>) -> Read<Option<String>> {
        let id = self.save.call1((text,))?;
        if id.is_none() {
            return Ok(None);
        }
        let Ok(id) = id.cast::<PyString>() else {
            return Err(parameter_type_error("store", "save to give an id as a text", &id).into());
        };
        let is_printable =
            |point: u32| char::from_u32(point).is_some_and(|char| matches!(char, ' '..='~' | '\u{a1}'..));
        let mut is_id = (1..=LONGEST_ID).contains(&chars(id));
        view(id).each_point(|point| is_id &= is_printable(point));
        if is_id {
            return Ok(Some(view(id).to_well_formed()));
        }
        let message = format!("store: expected save to give an id of 1 to {LONGEST_ID} printable characters");
        Err(PyValueError::new_err(message).into())
    }

    /// The same for what may be no text: what JSON cannot say (bytes, dates) cannot be saved.
    pub(crate) fn save_if_text(&self, text: Read<Bound<'py, PyString>>) -> Read<Option<String>> {
        match text {
            Ok(text) => self.save(text),
            Err(error) if error.is_of_message() => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// A list of messages, as far as it can be known without looking into its outputs.
pub(crate) struct List<'py> {
    pub(crate) transcript: Transcript,
    /// What each call calls, in the order of the table.
    calls: Vec<OwnCalled<'py>>,
}

/// A tool's name and its arguments.
struct OwnCalled<'py> {
    name: Option<Bound<'py, PyAny>>,
    arguments: Option<Bound<'py, PyAny>>,
}

impl<'py> List<'py> {
    /// The list, its outputs (in the order of the results in the table), and the tokens of each message.
    pub(crate) fn read(
        items: &Items<'_, 'py>,
        counter: &TokenCounter,
    ) -> Read<(Self, Vec<Output>, Vec<u64>)> {
        let mut list = Self { transcript: Transcript::new(), calls: Vec::new() };
        let (mut outputs, mut sizes, mut all) = (Vec::new(), Vec::new(), Vec::with_capacity(items.len()));
        let read = |message| {
            list.transcript.open();
            let mut noter = Noter { transcript: &mut list.transcript, calls: &mut list.calls };
            let (tokens, shape) = counter.message_tokens_with_outputs(&message, &mut noter, &mut sizes)?;
            list.transcript.close(Kind::of(shape.role, shape.has_results), shape.own_text);
            let message = all.len();
            outputs.extend(sizes.drain(..).map(|tokens| Output { message, tokens, replaced: false }));
            all.push(tokens);
            Ok(())
        };
        items.each(read).at_key("messages")?;
        Ok((list, outputs, all))
    }
}

/// Notes calls and results, and what is called.
struct Noter<'t, 'py> {
    transcript: &'t mut Transcript,
    calls: &'t mut Vec<OwnCalled<'py>>,
}

impl<'py> Visit<'py> for Noter<'_, 'py> {
    fn text(&mut self, _: Piece, _: &Bound<'py, PyString>) -> Read<()> {
        Ok(())
    }

    fn json(&mut self, _: Piece, _: &Bound<'py, PyAny>, _: Keys) -> Read<()> {
        Ok(())
    }

    fn call(&mut self, id: Option<&Bound<'py, PyString>>, called: Called<'_, 'py>) {
        self.transcript.call(id.map(view));
        let (name, arguments) = (called.name.cloned(), called.arguments.cloned());
        self.calls.push(OwnCalled { name, arguments });
    }

    fn result(&mut self, id: Option<&Bound<'py, PyString>>) {
        self.transcript.result(id.map(view));
    }
}

/// By what an output is known again: its call's id, the tool, its characters, how it begins and ends.
type Known = (String, String, usize, String);

/// A tool output itself.
struct Content<'py> {
    /// The message or the block that holds it.
    holder: Bound<'py, PyAny>,
    /// Its text; parts are joined by line feeds.
    text: Bound<'py, PyString>,
    /// Parts that are no text.
    attachments: usize,
}

/// Characters of both ends of an output by which it is known again.
const SAMPLE: usize = 24;

impl Content<'_> {
    /// Whether a stub is shorter; what is more than text always is.
    fn is_longer_than(&self, stub: &str) -> bool {
        self.attachments > 0 || stub.chars().count() < chars(&self.text)
    }

    fn sample(&self) -> String {
        let text = view(&self.text);
        let start = text.slice(0..SAMPLE).to_well_formed();
        start + &text.slice(text.chars().saturating_sub(SAMPLE)..usize::MAX).to_well_formed()
    }
}

/// Reads outputs when the core asks for them.
pub(crate) struct Reader<'a, 'py> {
    list: &'a List<'py>,
    items: &'a Items<'a, 'py>,
    counter: &'a TokenCounter,
    policy: &'a Policy,
    pairs: Pairs,
    /// The message of each output, and which of its results it is.
    places: Vec<(usize, usize)>,
    contents: Vec<Option<Content<'py>>>,
    /// What holds the results of the message that was asked for last.
    holders: Option<(usize, Vec<Bound<'py, PyAny>>)>,
    /// The fixed stub and its tokens.
    fixed: Option<Stub>,
    /// What the policy says of tools' names.
    named: HashMap<String, Named>,
    /// The path that was sought last.
    sought: Option<(String, Finder<'static>)>,
    /// The ids of outputs that were saved; none for those that could not be.
    saved: HashMap<usize, Option<String>>,
}

/// What the policy says of a tool's name.
#[derive(Clone, Copy)]
struct Named {
    kind: Tool,
    is_kept: bool,
    /// It is one of the only ones that are pruned.
    is_only: bool,
}

impl<'a, 'py> Reader<'a, 'py> {
    pub(crate) fn new(
        list: &'a List<'py>,
        items: &'a Items<'a, 'py>,
        counter: &'a TokenCounter,
        policy: &'a Policy,
        outputs: usize,
    ) -> Self {
        let mut places = Vec::with_capacity(outputs);
        for (message, entry) in list.transcript.entries().iter().enumerate() {
            places.extend((0..list.transcript.results_of(entry).len()).map(|place| (message, place)));
        }
        let contents = places.iter().map(|_| None).collect();
        let pairs = Pairs::of(&list.transcript, End::OfPart);
        Self {
            list,
            items,
            counter,
            policy,
            pairs,
            places,
            contents,
            holders: None,
            fixed: None,
            named: HashMap::new(),
            sought: None,
            saved: HashMap::new(),
        }
    }

    /// The call that an output answers.
    fn called(&self, output: usize) -> Option<&'a OwnCalled<'py>> {
        let call = self.pairs.answered.get(output).copied().flatten()?;
        self.list.calls.get(call)
    }

    fn call_id(&self, output: usize) -> String {
        let transcript = &self.list.transcript;
        transcript.results().get(output).map_or_else(String::new, |&id| transcript.id_text(id))
    }

    fn content(&mut self, output: usize) -> Read<&Content<'py>> {
        if !matches!(self.contents.get(output), Some(Some(_))) {
            let (index, place) = self.places.get(output).copied().unwrap_or_default();
            if self.holders.as_ref().is_none_or(|(known, _)| *known != index) {
                let holders = write::results(&self.items.get(index)?).at_index(index).at_key("messages")?;
                self.holders = Some((index, holders));
            }
            let holder = self.holders.as_ref().and_then(|(_, holders)| holders.get(place)).cloned();
            let holder = holder.ok_or_else(|| Error::wrong_value("a tool output", "none".to_owned()))?;
            let content = Content::of(holder).at_index(index).at_key("messages")?;
            if let Some(slot) = self.contents.get_mut(output) {
                *slot = Some(content);
            }
        }
        let content = self.contents.get(output).and_then(Option::as_ref);
        content.ok_or_else(|| Error::wrong_value("a tool output", "none".to_owned()))
    }

    /// What an output says: its text, how many parts are none, and the exit code that it names.
    pub(crate) fn said(
        &mut self,
        output: usize,
        facts: &Facts,
    ) -> Read<(Bound<'py, PyString>, usize, Option<i64>)> {
        let content = self.content(output)?;
        let code = facts.call.exits().and_then(|place| exit_code(view(&content.text), place));
        Ok((content.text.clone(), content.attachments, code))
    }

    /// The tool's name: that of the call, or what the output says where its call is nowhere.
    fn tool(&mut self, output: usize) -> Read<String> {
        let name = if let Some(called) = self.called(output) {
            called.name.clone()
        } else {
            let holder = &self.content(output)?.holder;
            fields::get(holder, intern!(holder.py(), "name"))?
        };
        let name = name.as_ref().and_then(|name| name.cast::<PyString>().ok());
        Ok(name.map_or_else(String::new, |name| view(name).to_well_formed()))
    }

    fn named(&mut self, tool: &str) -> Named {
        if let Some(&named) = self.named.get(tool) {
            return named;
        }
        let policy = self.policy;
        let named = Named {
            kind: policy.kinds.of(tool),
            is_kept: policy.keep_tools.has_name(tool),
            is_only: policy.only_tools.as_ref().is_some_and(|only| only.has_name(tool)),
        };
        self.named.insert(tool.to_owned(), named);
        named
    }

    /// Puts in the stubs of an earlier call; `sent` messages were in the last request.
    pub(crate) fn apply_again(
        &mut self,
        previous: &Report,
        sent: usize,
        outputs: &mut [Output],
        tokens: &mut [u64],
    ) -> Read<Vec<(usize, Edit)>> {
        let mut edits = Vec::new();
        let mut waiting: HashMap<Known, VecDeque<&Edit>> = HashMap::new();
        let mut apply = |reader: &mut Self, number: usize, edit: &Edit| -> Read<bool> {
            // what the model has not seen yet is not replaced
            let is_open = |output: &&mut Output| !output.replaced && output.message < sent;
            let Some(output) = outputs.get_mut(number).filter(is_open) else {
                return Ok(false);
            };
            let counter = reader.counter;
            let content = reader.content(number)?;
            let after = counter.output_tokens(content.text.py(), &edit.stub)?;
            if after >= output.tokens || !content.is_longer_than(&edit.stub) {
                return Ok(false);
            }
            let (index, place) = reader.places.get(number).copied().unwrap_or_default();
            let before = output.tokens;
            edits.push((number, Edit { index, place, before, after, new: false, ..edit.clone() }));
            if let Some(tokens) = tokens.get_mut(output.message) {
                *tokens = (*tokens + after).saturating_sub(before);
            }
            (output.tokens, output.replaced) = (after, true);
            Ok(true)
        };
        for edit in &previous.items {
            let known = (edit.call_id.clone(), edit.tool.clone(), edit.characters, edit.sample.clone());
            if let Ok(number) = self.places.binary_search(&(edit.index, edit.place))
                && self.known_by(number)? == known
                && apply(self, number, edit)?
            {
                continue;
            }
            waiting.entry(known).or_default().push_back(edit);
        }
        if !waiting.is_empty() {
            // the list has become shorter in front
            for number in 0..self.places.len() {
                if self.call_id(number).is_empty() {
                    continue; // what cannot be told apart
                }
                if let Some(known) = waiting.get_mut(&self.known_by(number)?)
                    && let Some(edit) = known.front()
                    && apply(self, number, edit)?
                {
                    known.pop_front();
                }
            }
        }
        Ok(edits)
    }

    /// By what an output is known again.
    fn known_by(&mut self, output: usize) -> Read<Known> {
        let (call_id, tool) = (self.call_id(output), self.tool(output)?);
        let content = self.content(output)?;
        Ok((call_id, tool, chars(&content.text), content.sample()))
    }

    /// Saves an output and says by what it is replaced; nothing if the id makes the stub too long.
    pub(crate) fn edit(
        &mut self,
        replacement: Replacement,
        outputs: &[Output],
        store: Option<&Store<'py>>,
    ) -> Read<Option<Edit>> {
        let Replacement { output, reason, facts, mut stub } = replacement;
        let before = outputs.get(output).map_or(0, |output| output.tokens);
        let stored = self.save(output, store)?;
        if let (Some(id), None) = (&stored, &self.policy.stub) {
            let counter = self.counter;
            let content = self.content(output)?;
            stub.text = with_id(&stub.text, id);
            stub.tokens = counter.output_tokens(content.text.py(), &stub.text)?;
            let least = self.policy.rules.min_saved.max(1);
            let is_enough = before.checked_sub(stub.tokens).is_some_and(|saved| saved >= least);
            if !is_enough || !self.content(output)?.is_longer_than(&stub.text) {
                return Ok(None);
            }
        }
        self.noted(Replacement { output, reason, facts, stub }, before, stored).map(Some)
    }

    /// What is said of a replacement.
    fn noted(&mut self, replacement: Replacement, before: u64, stored: Option<String>) -> Read<Edit> {
        let Replacement { output, reason, facts, stub } = replacement;
        let call_id = self.call_id(output);
        let (index, place) = self.places.get(output).copied().unwrap_or_default();
        let content = self.content(output)?;
        Ok(Edit {
            index,
            place,
            call_id,
            tool: facts.tool.clone(),
            kind: facts.call.kind,
            reason,
            before,
            after: stub.tokens,
            new: true,
            stub: stub.text,
            characters: chars(&content.text),
            sample: content.sample(),
            stored,
        })
    }

    /// Cuts an output down to so many tokens, and says what is left; nothing if that saves nothing.
    pub(crate) fn clamp(
        &mut self,
        output: usize,
        tokens: u64,
        outputs: &[Output],
        store: Option<&Store<'py>>,
    ) -> Read<Option<Edit>> {
        let before = outputs.get(output).map_or(0, |output| output.tokens);
        let (facts, stored) = (self.facts(output)?, self.save(output, store)?);
        let counter = self.counter;
        let content = self.content(output)?;
        let text = ends(counter, content, before, tokens, Keep::of(facts.call.kind), stored.as_deref())?;
        let after = counter.output_tokens(content.text.py(), &text)?;
        if after >= before || !content.is_longer_than(&text) {
            return Ok(None);
        }
        let edit = Replacement {
            output,
            reason: Reason::Clamped,
            facts: Rc::new(facts),
            stub: Stub { text, tokens: after, shorter: true },
        };
        self.noted(edit, before, stored).map(Some)
    }

    /// Saves an output, if there is a store; once.
    fn save(&mut self, output: usize, store: Option<&Store<'py>>) -> Read<Option<String>> {
        let Some(store) = store else { return Ok(None) };
        if let Some(id) = self.saved.get(&output) {
            return Ok(id.clone());
        }
        let index = self.places.get(output).map_or(0, |&(index, _)| index);
        let holder = &self.content(output)?.holder;
        let py = holder.py();
        let text = match fields::get(holder, intern!(py, "content"))?.map(Bound::cast_into::<PyString>) {
            Some(Ok(text)) => text,
            Some(Err(other)) => {
                let text = json::text(&other.into_inner(), Keys::All);
                text.at_key("content").at_index(index).at_key("messages")?.0
            }
            None => PyString::new(py, ""),
        };
        let id = store.save(text)?;
        self.saved.insert(output, id.clone());
        Ok(id)
    }

    /// Writes the stubs into `messages`; returns the tokens of each message.
    pub(crate) fn write(
        &mut self,
        messages: &Bound<'py, PyList>,
        edits: &mut Vec<(usize, Edit)>,
        before: &[u64],
    ) -> Read<Vec<u64>> {
        let mut after = before.to_vec();
        let mut lost = Vec::new(); // messages in which what is saved is lost in rounding
        for edits in edits.chunk_by_mut(|(_, one), (_, next)| one.index == next.index) {
            let Some(index) = edits.first().map(|(_, edit)| edit.index) else { continue };
            let stubs: Vec<(usize, &str)> =
                edits.iter().map(|(_, edit)| (edit.place, edit.stub.as_str())).collect();
            let message = write::with_stubs(&messages.get_item(index)?, &stubs)?;
            let tokens = self.counter.message_tokens(&message)?;
            if after.get(index).is_some_and(|&before| tokens >= before) {
                lost.push(index);
                continue;
            }
            messages.set_item(index, message)?;
            if let Some(after) = after.get_mut(index) {
                share(edits, after.saturating_sub(tokens));
                *after = tokens;
            }
        }
        edits.retain(|(_, edit)| lost.binary_search(&edit.index).is_err());
        Ok(after)
    }
}

/// How often a shorter cut is tried.
const CUTS: usize = 8;

/// The ends of an output, with a line between them that says what is missing, within so many tokens; where that is too
/// few for any of it, the line alone.
fn ends(
    counter: &TokenCounter,
    content: &Content<'_>,
    whole: u64,
    tokens: u64,
    keep: Keep,
    stored: Option<&str>,
) -> Read<String> {
    let (py, text) = (content.text.py(), view(&content.text));
    let saved = stored.map_or(Saved::Not, Saved::As);
    let totals = Totals::of(text);
    let cut = |chars| {
        let limits = Limits { chars, ..Limits::NONE };
        let Some(cut) = cut_known(text, totals, limits, keep) else { return text.to_well_formed() };
        let head = text.slice(0..cut.head).to_well_formed();
        let tail = text.slice(totals.chars - cut.tail..totals.chars).to_well_formed();
        let line = marker(cut.omitted_lines, cut.omitted_bytes, saved, "");
        let parts = [head, line, tail];
        parts.iter().filter(|part| !part.is_empty()).map(String::as_str).collect::<Vec<_>>().join("\n")
    };
    let mut room = tokens.saturating_sub(counter.output_tokens(py, &cut(0))?);
    let share = |chars: usize, part: u64, all: u64| {
        let share = chars as u128 * u128::from(part) / u128::from(all.max(1));
        usize::try_from(share).unwrap_or(usize::MAX).min(chars)
    };
    let mut chars = share(totals.chars, room, whole);
    for _ in 0..CUTS {
        let text = cut(chars);
        let found = counter.output_tokens(py, &text)?;
        if found <= tokens {
            return Ok(text);
        }
        room = room.saturating_sub(found - tokens);
        chars = share(chars, room, room + (found - tokens));
    }
    Ok(cut(0))
}

/// Shares what a message saves among its edits: tokens are rounded once for each message, and the edits must add up.
fn share(edits: &mut [(usize, Edit)], mut rest: u64) {
    for (_, edit) in edits.iter_mut() {
        let saved = edit.before.saturating_sub(edit.after).min(rest);
        edit.after = edit.before - saved;
        rest -= saved;
    }
    for (_, edit) in edits {
        let more = edit.after.min(rest);
        edit.after -= more;
        rest -= more;
    }
}

impl Source for Reader<'_, '_> {
    type Error = Error;

    fn is_stub(&mut self, output: usize) -> Read<bool> {
        let own = self.policy.stub.as_deref();
        Ok(is_stub(view(&self.content(output)?.text), own))
    }

    fn facts(&mut self, output: usize) -> Read<Facts> {
        let tool = self.tool(output)?;
        let named = self.named(&tool);
        let arguments = match self.called(output).and_then(|called| called.arguments.as_ref()) {
            Some(arguments) => read::arguments(arguments, members_of(named.kind))?,
            None => Arguments::default(),
        };
        let call = Call::new(named.kind, &arguments);
        let content = self.content(output)?;
        let holder = &content.holder;
        let py = holder.py();
        let is_flagged = fields::get(holder, intern!(py, "is_error"))?.is_some_and(|flag| is_true(&flag))
            || fields::get(holder, intern!(py, "status"))?.as_ref().and_then(one_byte_text) == Some(b"error");
        let failed = is_flagged
            || match call.exits() {
                Some(place) => exit_code(view(&content.text), place).is_some_and(|code| code != 0),
                None => call.kind != Tool::Agent && begins_as_failure(view(&content.text)),
            };
        let characters = chars(&content.text);
        let policy = self.policy;
        let paths = call.path.iter().chain(call.read.iter().map(|(path, _)| path));
        let kept = named.is_kept
            || policy.keep_tools.has_kind(call.kind)
            || paths.into_iter().any(|path| policy.keep_paths.has_name(path))
            || policy.only_tools.as_ref().is_some_and(|only| !named.is_only && !only.has_kind(call.kind));
        Ok(Facts { tool, call, failed, characters, kept })
    }

    fn line_feeds(&mut self, output: usize) -> Read<usize> {
        Ok(view(&self.content(output)?.text).count(b'\n'))
    }

    fn may_read(&mut self, output: usize, path: &str) -> Read<bool> {
        let tool = self.tool(output)?;
        let kind = self.named(&tool).kind;
        let Some(arguments) = self.called(output).and_then(|called| called.arguments.as_ref()) else {
            return Ok(false);
        };
        match kind {
            Tool::Read | Tool::Command => {}
            // of Anthropic's editor, which also shows files
            Tool::Edit if one_byte_text(arguments).is_none_or(|json| find(json, b"view").is_some()) => {}
            _ => return Ok(false),
        }
        let Some(json) = one_byte_text(arguments) else { return Ok(true) };
        let (_, finder) = match &self.sought {
            Some(sought) if sought.0 == path => sought,
            _ => {
                // a shell may have been in the directory
                let name = path.rsplit('/').next().unwrap_or(path);
                self.sought.insert((path.to_owned(), Finder::new(name).into_owned()))
            }
        };
        // JSON may write other characters in other ways
        let is_plain = path.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\');
        Ok(!is_plain || finder.find(json).is_some() || memchr(b'\\', json).is_some())
    }

    fn stub(&mut self, output: usize, facts: &Facts, remark: Option<Remark>) -> Read<Stub> {
        let (fixed, counter, text) = (self.fixed.clone(), self.counter, self.policy.stub.clone());
        let content = self.content(output)?;
        let (py, attachments) = (content.text.py(), content.attachments);
        let shorter = |stub: &str| content.is_longer_than(stub);
        if let Some(text) = text {
            let stub = match fixed {
                Some(stub) => stub,
                None => Stub { tokens: counter.output_tokens(py, &text)?, text, shorter: false },
            };
            let shorter = shorter(&stub.text);
            return Ok(Stub { shorter, ..self.fixed.insert(stub).clone() });
        }
        let (tool, call, failed) = (facts.tool.as_str(), &facts.call, facts.failed);
        let text = stub(Old { tool, call, text: view(&content.text), attachments, failed }, remark);
        Ok(Stub { tokens: counter.output_tokens(py, &text)?, shorter: shorter(&text), text })
    }
}

impl<'py> Content<'py> {
    /// What a message or a block holds.
    fn of(holder: Bound<'py, PyAny>) -> Read<Self> {
        let py = holder.py();
        let content = fields::get(&holder, intern!(py, "content"))?;
        let (text, attachments) = match &content {
            Some(content) => read::text_of(content)?,
            None => (PyString::new(py, ""), 0),
        };
        Ok(Self { holder, text, attachments })
    }
}

fn is_true(flag: &Bound<'_, PyAny>) -> bool {
    flag.cast::<PyBool>().is_ok_and(PyBoolMethods::is_true)
}
