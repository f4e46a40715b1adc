"""Summaries of what was said before: prompts, checks, a summary without a model, and their place in the list.

`summarise` is the whole chain; the other functions are its parts.
"""

from ctxfast.summary.chain import Summarizer, Summary, acondense, asummarise, condense, summarise
from ctxfast.summary.checking import SummaryCheck, SummaryProblem, check_summary
from ctxfast.summary.fallback import fallback_summary, finished_segments, segment_line
from ctxfast.summary.placing import FoundSummary, find_summary, insert_summary
from ctxfast.summary.prompts import SUMMARY_TEMPLATE, build_condensed_prompt, build_summary_prompt

__all__ = [
    "SUMMARY_TEMPLATE",
    "FoundSummary",
    "Summarizer",
    "Summary",
    "SummaryCheck",
    "SummaryProblem",
    "acondense",
    "asummarise",
    "build_condensed_prompt",
    "build_summary_prompt",
    "check_summary",
    "condense",
    "fallback_summary",
    "find_summary",
    "finished_segments",
    "insert_summary",
    "segment_line",
    "summarise",
]
