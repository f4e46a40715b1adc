//! What a provider would refuse in a conversation, as stable codes.
//!
//! One pass over the table and its pairs. The rules are those of the two forms: what `OpenAI`'s chat completions and
//! Anthropic's messages answer with status 400. Where they differ, the form decides.

use crate::pairs::{Answer, End, Pairs};
use crate::part::Role;
use crate::transcript::{BLANK, Id, Kind, Transcript};

/// The form whose rules apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Chat completions of OpenAI, and of all who speak them.
    OpenAi,
    /// Messages of Anthropic.
    Anthropic,
}

/// What [`validate`] needs to know of a message beyond the table.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "facts, each by itself")]
pub struct Facts {
    /// The form that it can only be of, if there is one.
    pub form: Option<Form>,
    /// Neither text nor anything else.
    pub empty: bool,
    /// A text block without text.
    pub empty_text: bool,
    /// A tool result behind something else in a user message.
    pub late_result: bool,
    /// A thinking block without its signature.
    pub unsigned_thinking: bool,
    /// A call without a name.
    pub nameless_call: bool,
}

/// What is wrong. The names are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// A result that answers no open call.
    OrphanResult,
    /// A second result of a call.
    DuplicateResult,
    /// A call without a result, though the conversation went on.
    UnansweredCall,
    /// All results of a message's calls come, but not directly after it.
    ResultOutOfOrder,
    /// Some results of a message's calls come directly after it, others later.
    SplitParallelGroup,
    /// A call or a result without an id.
    BlankId,
    /// A call without a name.
    BlankName,
    /// The same id twice in one message. (Anthropic)
    DuplicateCallId,
    /// No message of a user.
    NoUserMessage,
    /// The first message is none of a user. (Anthropic)
    FirstNotUser,
    /// A message without any content. (Anthropic)
    EmptyMessage,
    /// A text block without text. (Anthropic)
    EmptyText,
    /// A tool result behind other blocks of its message. (Anthropic)
    ResultAfterText,
    /// A thinking block without its signature. (Anthropic)
    ThinkingWithoutSignature,
    /// A message of the other form.
    MixedForms,
    /// A role that the form does not know.
    UnknownRole,
}

impl Code {
    /// Its stable name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OrphanResult => "orphan_result",
            Self::DuplicateResult => "duplicate_result",
            Self::UnansweredCall => "unanswered_call",
            Self::ResultOutOfOrder => "result_out_of_order",
            Self::SplitParallelGroup => "split_parallel_group",
            Self::BlankId => "blank_id",
            Self::BlankName => "blank_name",
            Self::DuplicateCallId => "duplicate_call_id",
            Self::NoUserMessage => "no_user_message",
            Self::FirstNotUser => "first_not_user",
            Self::EmptyMessage => "empty_message",
            Self::EmptyText => "empty_text",
            Self::ResultAfterText => "result_after_text",
            Self::ThinkingWithoutSignature => "thinking_without_signature",
            Self::MixedForms => "mixed_forms",
            Self::UnknownRole => "unknown_role",
        }
    }
}

/// One thing that is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What.
    pub code: Code,
    /// In which message.
    pub index: usize,
    /// The id of the call or result that it is about.
    pub id: Option<Id>,
}

/// The form of a conversation: that of the first message that can only be of one. `OpenAi` if there is none.
#[must_use]
pub fn form_of(facts: &[Facts]) -> Form {
    facts.iter().find_map(|facts| facts.form).unwrap_or(Form::OpenAi)
}

/// All problems, in the order of the messages. `strict`: a gateway sends the list on to Anthropic, so that its rules of
/// who speaks first and of empty messages hold in OpenAI's form too.
#[must_use]
pub fn validate(
    transcript: &Transcript,
    facts: &[Facts],
    roles: &[Role],
    form: Form,
    strict: bool,
) -> Vec<Problem> {
    let strict = strict || form == Form::Anthropic;
    let mut check = Check {
        transcript,
        pairs: Pairs::of(transcript, End::OfList),
        form,
        strict,
        problems: Vec::new(),
        newest_caller: None,
        seen: vec![usize::MAX; transcript.id_count()],
    };
    for (index, ((entry, facts), &role)) in transcript.entries().iter().zip(facts).zip(roles).enumerate() {
        check.message(index, entry.kind, *facts, role);
        check.results(index);
        check.calls(index);
    }
    let first = transcript.entries().iter().position(|entry| entry.kind != Kind::System);
    if !transcript.entries().iter().any(|entry| entry.own_text) {
        check.problems.push(Problem { code: Code::NoUserMessage, index: first.unwrap_or(0), id: None });
    } else if let Some(index) = first
        && strict
        && roles.get(index) != Some(&Role::User)
    {
        check.problems.push(Problem { code: Code::FirstNotUser, index, id: None });
    }
    check.problems.sort_by_key(|problem| problem.index);
    check.problems
}

struct Check<'t> {
    transcript: &'t Transcript,
    pairs: Pairs,
    form: Form,
    strict: bool,
    problems: Vec<Problem>,
    /// The newest assistant message, and the last message of the results that directly follow it.
    newest_caller: Option<usize>,
    /// For each id the message that last had a call with it.
    seen: Vec<usize>,
}

impl Check<'_> {
    fn add(&mut self, code: Code, index: usize, id: Option<Id>) {
        self.problems.push(Problem { code, index, id });
    }

    fn message(&mut self, index: usize, kind: Kind, facts: Facts, role: Role) {
        if role == Role::Other || (role == Role::Result && self.form == Form::Anthropic) {
            self.add(Code::UnknownRole, index, None);
        } else if facts.form.is_some_and(|form| form != self.form) {
            self.add(Code::MixedForms, index, None);
        }
        if facts.nameless_call {
            self.add(Code::BlankName, index, None);
        }
        let is_last = index + 1 == self.transcript.entries().len();
        if self.strict && facts.empty && !(is_last && kind == Kind::Step) {
            self.add(Code::EmptyMessage, index, None);
        }
        if self.form == Form::OpenAi {
            return;
        }
        if facts.empty_text && !facts.empty {
            self.add(Code::EmptyText, index, None);
        }
        if facts.late_result {
            self.add(Code::ResultAfterText, index, None);
        }
        if facts.unsigned_thinking {
            self.add(Code::ThinkingWithoutSignature, index, None);
        }
    }

    fn results(&mut self, index: usize) {
        let transcript = self.transcript;
        let Some(entry) = transcript.entries().get(index) else { return };
        for result in transcript.results_of(entry) {
            let id = transcript.results().get(result).copied();
            if id == Some(BLANK) {
                self.add(Code::BlankId, index, id);
            }
            if self.pairs.answered.get(result).copied().flatten().is_none() {
                let caller = id.and_then(|id| self.seen.get(id as usize)).copied();
                let again = self.newest_caller.is_some() && caller == self.newest_caller;
                self.add(if again { Code::DuplicateResult } else { Code::OrphanResult }, index, id);
            }
        }
        if entry.kind == Kind::Step {
            self.newest_caller = Some(index);
        }
    }

    fn calls(&mut self, index: usize) {
        let transcript = self.transcript;
        let Some(entry) = transcript.entries().get(index) else { return };
        let calls = transcript.calls_of(entry);
        if calls.is_empty() {
            return;
        }
        let end = self.end_of_results(index);
        let is_direct = |answer: &Answer| matches!(*answer, Answer::In(message) if message < end);
        let answers = self.pairs.answers.get(calls.clone()).unwrap_or_default();
        let some_are_direct = answers.iter().any(is_direct);
        let mut found = Vec::new();
        for (call, answer) in calls.zip(answers) {
            let id = transcript.calls().get(call).copied();
            let seen = id.and_then(|id| self.seen.get_mut(id as usize));
            let is_again = seen.is_some_and(|seen| std::mem::replace(seen, index) == index);
            if id == Some(BLANK) {
                found.push(Problem { code: Code::BlankId, index, id });
            } else if is_again && self.form == Form::Anthropic {
                found.push(Problem { code: Code::DuplicateCallId, index, id });
            }
            match *answer {
                Answer::Never => found.push(Problem { code: Code::UnansweredCall, index, id }),
                Answer::In(message) if message >= end => {
                    let code =
                        if some_are_direct { Code::SplitParallelGroup } else { Code::ResultOutOfOrder };
                    found.push(Problem { code, index: message, id });
                }
                Answer::In(_) | Answer::Running => {}
            }
        }
        self.problems.extend(found);
    }

    /// The message behind the results that directly follow a message with calls: in Anthropic's form these are one
    /// message, in OpenAI's all that are nothing but results.
    fn end_of_results(&self, index: usize) -> usize {
        let following = self.transcript.entries().get(index + 1..).unwrap_or_default();
        match self.form {
            Form::Anthropic => index + 2,
            Form::OpenAi => {
                index + 1 + following.iter().take_while(|entry| entry.kind == Kind::Stray).count()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::tests::transcript;

    fn codes(script: &str, form: Form) -> Vec<(&'static str, usize)> {
        let transcript = transcript(script);
        let roles: Vec<Role> = script
            .split_whitespace()
            .map(|word| match &word[..1] {
                "S" => Role::System,
                "U" | "M" => Role::User,
                "A" => Role::Assistant,
                "T" if form == Form::Anthropic => Role::User,
                "T" => Role::Result,
                _ => Role::Other,
            })
            .collect();
        let facts = vec![Facts::default(); roles.len()];
        validate(&transcript, &facts, &roles, form, false)
            .into_iter()
            .map(|problem| (problem.code.name(), problem.index))
            .collect()
    }

    #[test]
    fn valid_conversations_have_no_problems() {
        for script in ["S U Aab Tb Ta A U", "U Ax Tx Ax Tx", "U Aab Ta", "U"] {
            assert_eq!(codes(script, Form::OpenAi), [], "{script}");
        }
        for script in ["S U Aab Tab A U", "U Aa Ma Ab Tb", "U Aa"] {
            assert_eq!(codes(script, Form::Anthropic), [], "{script}");
        }
    }

    #[test]
    fn results_without_calls_and_calls_without_results() {
        assert_eq!(
            codes("Tz U Aa Ta Ta A Tz", Form::OpenAi),
            [("orphan_result", 0), ("duplicate_result", 4), ("orphan_result", 6)]
        );
        assert_eq!(codes("U Aa U A", Form::OpenAi), [("unanswered_call", 1)]);
    }

    #[test]
    fn results_must_follow_directly() {
        assert_eq!(codes("U Aa U Ta A", Form::OpenAi), [("result_out_of_order", 3)]);
        assert_eq!(codes("U Aab Ta U Tb A", Form::OpenAi), [("split_parallel_group", 4)]);
        assert_eq!(codes("U Aab Ta Tb A", Form::Anthropic), [("split_parallel_group", 3)]);
    }

    #[test]
    fn who_speaks_first_and_at_all() {
        assert_eq!(codes("S A U A", Form::Anthropic), [("first_not_user", 1)]);
        assert_eq!(codes("S A U A", Form::OpenAi), []);
        assert_eq!(codes("S A", Form::OpenAi), [("no_user_message", 1)]);
        assert_eq!(codes("O U", Form::OpenAi), [("unknown_role", 0)]);
    }

    #[test]
    fn ids() {
        assert_eq!(codes("U A_ T_", Form::OpenAi), [("blank_id", 1), ("blank_id", 2)]);
        assert_eq!(codes("U Axx Txx", Form::Anthropic), [("duplicate_call_id", 1)]);
    }
}
