"""The brand kit: palette, fonts, logos, voice and tagline, drafted from what the merchant told."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final

from tolsey.actors.store.launch.executors.work import Finished, LaunchWork, Taken, WriteTexts
from tolsey.actors.store.launch.texts import standard_texts
from tolsey.actors.store.launch.texts.drafting import TextBrief

Palette = Mapping[str, str]

TONES: Final[Mapping[str, Mapping[str, Any]]] = {
    "warm": {
        "palettes": (
            ("#7A3E2B", "#F3E3D3", "#D98E5F", "#FFFBF6", "#2B1D16"),
            ("#5B4636", "#EFE6DA", "#C06C4E", "#FFFDF9", "#241C15"),
        ),
        "fonts": ("Lora", "Source Sans 3"),
        "voice": "Warm and close: speaks to one person, says we and you, and never shouts.",
        "tagline": "{subject}, made to feel like home.",
    },
    "playful": {
        "palettes": (
            ("#3B2FB0", "#FFE3EC", "#FF7A59", "#FFFFFF", "#1B1640"),
            ("#00796B", "#FFF3C4", "#FF5C8A", "#FFFFFF", "#0F2B27"),
        ),
        "fonts": ("Fredoka", "Nunito"),
        "voice": "Playful and quick: short sentences, a wink now and then, always clear about facts.",
        "tagline": "{subject} with a smile.",
    },
    "plain": {
        "palettes": (
            ("#1F3A5F", "#EEF2F6", "#2E7D6B", "#FFFFFF", "#16202B"),
            ("#2B3A42", "#F0F2F2", "#3E7CB1", "#FFFFFF", "#161C20"),
        ),
        "fonts": ("Work Sans", "Inter"),
        "voice": "Plain and kind: says what a thing is, what it costs and when it comes.",
        "tagline": "{subject}, plain and good.",
    },
    "luxurious": {
        "palettes": (
            ("#1C1B1A", "#F5F1E8", "#A8843F", "#FFFFFF", "#141312"),
            ("#22303C", "#F2EFEA", "#8C6A4F", "#FFFFFF", "#151C22"),
        ),
        "fonts": ("Cormorant Garamond", "Jost"),
        "voice": "Calm and exact: few words, fine materials named by their names, no exclamation.",
        "tagline": "{subject}, with care in every detail.",
    },
}
USUAL_TONE: Final = "plain"
COLOURS: Final = ("primary", "secondary", "accent", "background", "text")
WIDE: Final = 0.62
"""How wide a letter of a heading is on the average, of its height."""


def draft(work: LaunchWork) -> Taken:
    """Draft the kit of a form: the same form has the same kit, and what the merchant brought stands."""
    yield from ()
    spec, given = work.spec, work.given_kit
    brief = _words(spec, given)
    drafted = work.drafted(brief)
    if drafted is None:
        return WriteTexts(brief)
    words = {name: text[0].paragraphs[0] for name, text in drafted.texts.items()}
    digest = _digest(spec, given)
    # Other words are another kit, which is approved anew.
    draft_hash = digest if drafted.by == "template" else _digest(spec, given, words)
    name = spec["businessName"]
    tone = TONES[spec.get("tone") or USUAL_TONE]
    palettes: Sequence[Sequence[str]] = tone["palettes"]
    chosen = palettes[int(digest[:8], 16) % len(palettes)]
    palette = {**dict(zip(COLOURS, chosen, strict=True)), **(given.get("palette") or {})}
    heading, body = tone["fonts"]
    fonts = {"heading": heading, "body": body, **(given.get("fonts") or {})}
    kit = {
        "name": name,
        "palette": palette,
        "fonts": fonts,
        "voice": given.get("voice") or words["voice"],
        "tagline": given.get("tagline") or words["tagline"],
        "logos": [
            {
                "name": "wordmark",
                "alt": f"Logo of {name}",
                "svg": wordmark(name, palette, fonts["heading"]),
            },
            {
                "name": "mark",
                "alt": f"Mark of {name}",
                "svg": mark(name, palette, fonts["heading"]),
            },
        ],
        "draftHash": draft_hash,
    }
    facts = {
        "brand.name": name,
        "brand.palette": " ".join(f"{one} {palette[one]}" for one in COLOURS),
        "brand.fonts": f"{fonts['heading']}, {fonts['body']}",
        "brand.voice": kit["voice"],
        "brand.tagline": kit["tagline"],
    }
    return Finished(
        result={"draftHash": draft_hash, "texts": drafted.told()},
        facts=facts,
        modules={"brandKit": kit},
        draft_hash=draft_hash,
    )


def _digest(*told: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def _words(spec: Mapping[str, Any], given: Mapping[str, Any]) -> TextBrief:
    """Say what of a kit is words: how the shop speaks, and the line under its name; the merchant's own stand."""
    tone = TONES[spec.get("tone") or USUAL_TONE]
    tagline = tone["tagline"].format(subject=_begun(spec.get("industry") or spec["businessName"]))
    drafts = {"voice": tone["voice"], "tagline": tagline}
    return TextBrief(
        facts=standard_texts.facts(spec),
        voice=given.get("voice"),
        drafts={
            name: (standard_texts.TextPart(heading=None, paragraphs=(said,)),)
            for name, said in drafts.items()
            if not given.get(name)
        },
    )


def wordmark(name: str, palette: Palette, font: str) -> str:
    """Draw a name as a logo."""
    width = round(len(name) * 48 * WIDE) + 48
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} 96" role="img">'
        f"<title>{escape(name)}</title>"
        f'<text x="24" y="64" font-family="{escape(font)}, sans-serif" font-size="48"'
        f' fill="{palette["primary"]}">{escape(name)}</text></svg>'
    )


def mark(name: str, palette: Palette, font: str) -> str:
    """Draw the first letter of a name on a tile, for where a name does not fit."""
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 96 96" role="img">'
        f"<title>{escape(name)}</title>"
        f'<rect width="96" height="96" rx="20" fill="{palette["primary"]}"/>'
        f'<text x="48" y="66" text-anchor="middle" font-family="{escape(font)}, sans-serif"'
        f' font-size="56" fill="{palette["background"]}">{escape(name[:1].upper())}</text></svg>'
    )


def _begun(text: str) -> str:
    """Begin a sentence with a text."""
    return text[:1].upper() + text[1:]
