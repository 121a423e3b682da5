"""Names that are nearly right: the hint at the end of a message about an unknown one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_SIMILARITY_MIN: Final = 0.67
# A name that is this much less like the wrong one than the best is no help.
_SIMILARITY_SPREAD: Final = 0.12
_HINTS_MAX: Final = 3


def suggest(name: str, candidates: Iterable[str]) -> str:
    """A hint such as `; did you mean "l_orderkey"?`, or "" when no candidate is near.

    Names are compared without regard to case and shown as the candidates spell them.
    """
    from difflib import SequenceMatcher, get_close_matches

    spelled = {candidate.lower(): candidate for candidate in candidates}
    near = get_close_matches(name.lower(), spelled, _HINTS_MAX, _SIMILARITY_MIN)
    if not near:
        return ""
    scores = [SequenceMatcher(None, match, name.lower()).ratio() for match in near]
    names = [
        f'"{spelled[match]}"'
        for match, score in zip(near, scores, strict=True)
        if score > scores[0] - _SIMILARITY_SPREAD
    ]
    listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
    return f"; did you mean {listed}?"
