"""List the wordings that the project does not use, each with its reason and a rewrite.

The standard is plain, idiomatic English in the field's terms, as Stripe, Shopify and PostgreSQL write it. A
pattern is here only where it is wrong nearly every time; everything else is an editor's work.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tests.writing.fragments import ROOT, Fragment, Kind

GLOSSARY: Final = ROOT / "docs" / "glossary.md"
REJECTED_NAMES: Final = tuple(
    name.replace("?", r"\?")
    for row in re.findall(
        r"^\|[^|]*\|[^|]*\|([^|]*)\|[^|]*\|$", GLOSSARY.read_text("utf-8"), re.MULTILINE
    )
    for name in re.findall(r"`([^`]+)`", row)
)
"""Names from the column "instead of" of docs/glossary.md."""
EVERYWHERE: Final = frozenset(Kind)
SHOWN_WORDS: Final = 8
ON_PAGES: Final = frozenset({Kind.PAGE, Kind.PAGE_HEADING})
LABELS: Final = frozenset({Kind.PAGE, Kind.PAGE_HEADING, Kind.DOC_HEADING})


@dataclass(frozen=True, slots=True)
class Pattern:
    """A wording to avoid: why, and what to write. A space in `wording` matches any white space."""

    name: str
    wording: re.Pattern[str]
    reason: str
    rewrite: str
    kinds: frozenset[Kind] = EVERYWHERE


def pattern(
    name: str, wording: str, reason: str, rewrite: str, kinds: frozenset[Kind] = EVERYWHERE
) -> Pattern:
    """Compile a wording in which a space stands for any white space.

    Where the wording starts with a word boundary, so does each of its alternatives.
    """
    return Pattern(name, re.compile(wording.replace(" ", r"\s+")), reason, rewrite, kinds)


ODD: Final = "this verb has another meaning in plain English"
TERM: Final = "the field has a term for this"
START: Final = r"(?:^\s*|[.:;!?·|]\s+)"
PATTERNS: Final = (
    pattern(
        "subject-who",
        START + r"(?:Who|Whoever|What)\b(?!['\u2019]s new)(?! happened\b)(?: [^\s.?!|]+){3,}[.;,:]?(?=\s|$)(?![^.!|]*\?)",
        "a clause is no name for the actor or the thing",
        "name the actor or the thing: the caller, the buyer, Security and notifications",
    ),
    pattern(
        "clause-label",
        r"^\s*(?:Where|How|When|Why) (?:exactly )?(?:the|it|they|a|an|your|what)\b(?! works\b)[^.?!]*$",
        "a label is a noun or a verb, not a clause",
        "Revenue sources; Display; Sync schedule",
        LABELS,
    ),
    pattern("whoever", r"\b[Ww]hoever\b|\b[Ss]omebody\b", "the actor has no name", "the caller, the operator, a member, the buyer"),
    pattern("nobody", r"\b[Nn]obody\b", "the actor has no name", "neither party; no user; or the passive"),
    pattern("told", r"\b[Tt]old\b(?! apart\b)", ODD, "reported, sent, notified, returned"),
    pattern("said", r"\b[Ss]aid\b", ODD, "stated, specified, returned, mentioned"),
    pattern("says-what", r"\bsays? (?:so|what|which|how|why|when|whether|who|no)\b", ODD, "states, shows, specifies; or name the thing"),
    pattern("what-was", r"\b[Ww]hat (?:was|is|were|has been|had been) (?:asked|told|said|shown|sent|kept|read|done|made|given|written|wanted|found|known|new)\b(?!\?)", "a clause hides the thing", "the request, the entry, the stored data"),
    pattern("kept", r"\b(?:is|are|was|were|be|been) kept\b(?! (?:up|in sync|open|private|secret|current))|\bkept (?:nowhere|of)\b", ODD, "stored, saved, retained"),
    pattern("stands-on", r"\b(?:stand|stands|stood) (?:on|beside|there|here|under|above|below|nowhere|alone)\b", ODD, "depends on, is listed, appears, is shown next to"),
    pattern("goes-on", r"\b(?:go|goes|went) on\b(?! to\b)", ODD, "continue, proceed"),
    pattern("take-back", r"\b[Tt](?:ake|akes|aken|ook|aking)(?: \w+){0,2} back\b", ODD, "undo, withdraw, revoke"),
    pattern("given-back", r"\b[Gg](?:ive|ives|iven|ave|iving)(?: \w+){0,2} back\b|\b[Ww]hat came back\b|\bless what came\b", TERM, "refunded, returned; Refunds"),
    pattern("let-go", r"\blets? go\b", ODD, "release, delete"),
    pattern("forgotten", r"\b(?:is|are|was|were|be|been) forgotten\b", ODD, "deleted, erased"),
    pattern("comes-to", r"\bcomes? to (?:more|less|zero|nothing|\d)", ODD, "totals, amounts to"),
    pattern("look-again", r"\b[Ll]ook again\b|\b[Ll]ook(?:ed|s)? at (?:it|them|both)\b|\bsince you looked\b|\b[Ll]ooked into\b|\blook what\b", ODD, "reload, check, review, fetch"),
    pattern("have-done", START + r"[Hh]ave (?:\w+ ){1,6}(?:done|made|proposed|decided|read|sent|written|resume)\b", "imperative verbs are shorter", "request, run, ask a store admin to"),
    pattern("mend", r"\b[Mm]end(?:s|ed|ing)?\b", ODD, "fix, repair"),
    pattern("anew", r"\banew\b", "archaic", "again"),
    pattern("by-itself", r"\bby (?:itself|themselves)\b", ODD, "automatically, on its own"),
    pattern("at-once", r"\bat once\b", "it has two meanings", "immediately; at the same time"),
    pattern("in-earnest", r"\bin earnest\b", ODD, "in production"),
    pattern("wants", r"\b[Ww]ants? (?:doing|not to be)\b|\b(?:is|are) wanted\b|\b[Nn]othing needs you\b|\bneeds? do\b", ODD, "needs, requires; You can ignore this"),
    pattern("is-no", r"(?<!there\s)(?<!There\s)\b(?:is|are|was|were) no (?!longer\b|more\b|less\b|fewer\b|later\b|earlier\b|older\b|newer\b|greater\b|larger\b|smaller\b|better\b|worse\b|way\b|need\b|other\b|one\b|such\b)\w+", "negate the verb", "is not a ..., is not valid ..."),
    pattern("is-none", r"\b(?:is|are|was|were) none\b(?! of\b)", "negate the verb", "is not one; does not exist"),
    pattern("not-one-of", r"\bnot one (?:of (?:this|its|ours|yours)|that|we)\b", "clipped", "isn't valid for this list; isn't an invitation from this service"),
    pattern("away", r"\b(?:is|are|was|were|be) away\b|\bout of reach\b|\b[Oo]ut of reach\b", ODD, "unreachable"),
    pattern("platform-on-page", r"\b[Tt]he (?:platform|processor|payment processor|commerce platform|shop['\u2019]s platform)\b", "readers know it by its name", "Shopify; Stripe", ON_PAGES),
    pattern("such-as", START + r"Such as\b", "a fragment without a verb", "Example: ..."),
    pattern("of-people", r"\bof (?:people|somebody|everybody)\b|\bpapers\b", "the actor or the thing has a name", "personal data, users, members; documents"),
    pattern("picture-of", r"\b[Pp]ictures? of\b", ODD, "a chart of, an image of, a screenshot of"),
    pattern("lets-in", r"\b[Ll]ets? (?:the \w+|them|you|him|her|us) in\b|\b[Ll]ets? in\b|\b[Ll]ent by\b|\bend the talks\b|\bEnd the talks\b", TERM, "Approve access; Seller financing; End negotiations"),
    pattern("of-start", START + r"Of (?:your|what|the|a|an|its|this)\b", 'a fragment that starts with "of"', "Plan credits; Shipping amount; The id of ..."),
    pattern("of-compound", r"\b(?:Revenue|Orders|Sales|Rules|Limits|Settings) of (?:the (?:chat|last)|\d+)", "English compounds", "30-day revenue, Chat limits"),
    pattern("of-chain", r"\bof (?:[\w'\u2019-]+ ){1,3}of (?:[\w'\u2019-]+ ){1,3}of\b", 'a chain of "of"', "compound nouns or the possessive"),
    pattern("so-much", r"; else\b|\bAll in all\b|\bfrom so (?:much|many)\b", "vague and clipped", "name the amount and the default: Omit it to use ..."),
    pattern("begin-at", r"[:;] begin\b|\bbegin at its\b", "a command after a colon", "Start again from the first page."),
    pattern("lapse", r", chained\b|\blapses? then\b|\ball that follow\b|\bon a lead\b", "private terms", "expires; tamper-evident; with limits you set"),
    pattern("two-truths", START + r"See that\b|\btwo truths\b|\btwo of one\b|\bstops? the start\b|\bfor good\b", "archaic or clipped", "Make sure that ...; fail at startup; permanently"),
    pattern("say-docstring", r"^\s*(?:Say|Tell|Tells|Says|Give what|Know|Hear)\b", "a docstring starts with a plain verb", "Return, List, Record, Raise, Check", frozenset({Kind.DOCSTRING})),
    pattern("private-label", r"^\s*(?:Show it to everyone|Not over|Orders a day: .*|Being read|Let in)\s*$|\b[Oo]rders a day\b|\bShow it to everyone\b", TERM, "Publish; Today so far; Orders per day", ON_PAGES),
    pattern("glossary", rf"^\s*(?:{'|'.join(REJECTED_NAMES)})\s*$", "the glossary has another name", "the name in docs/glossary.md", ON_PAGES),
    pattern("long-heading", r"^\s*(?:\S+ ){4,}\S+\s*$", "a heading on a page has one to four words", "Security and notifications", frozenset({Kind.PAGE_HEADING})),
    pattern("semicolon-chain", r"; (?:[^\s.!?|;]+ ){3,}[^\s.!?|;]*; ", "a chain of semicolons", "sentences, or a list"),
    pattern("long-sentence", r"(?<!\S)(?=(?s:.){80})(?:(?!\S*[.!?|][)\"'*\u201d\u2019]*\s)\S+ ){25,}\S+", "a sentence has at most 25 words", "two sentences, one idea each"),
)  # fmt: skip


AT_WORDS: Final = tuple(one for one in PATTERNS if one.wording.pattern.startswith(r"\b"))
ELSEWHERE: Final = tuple(one for one in PATTERNS if one not in AT_WORDS)
ANY_AT_WORDS: Final = re.compile(rf"\b(?:{'|'.join(one.wording.pattern for one in AT_WORDS)})")
"""Most fragments match none of these: one search in place of thirty."""


def find_violations(fragment: Fragment) -> Iterator[tuple[Pattern, int, str]]:
    """List the patterns that a fragment matches, each with its line and the first words of the match."""
    for one in PATTERNS if ANY_AT_WORDS.search(fragment.text) else ELSEWHERE:
        if fragment.kind in one.kinds:
            for found in one.wording.finditer(fragment.text):
                start = found.start() + len(found[0]) - len(found[0].lstrip())
                line = fragment.line + fragment.text.count("\n", 0, start)
                yield one, line, " ".join(found[0].split()[:SHOWN_WORDS])
