"""What a reader must know of what a program says of blocks: which code, how many blocks, and what a box leaves open."""

from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato.core.description import Description, Form, Listed, MeasuredColumn, OneLine, Paragraph, Word, phrase, plain
from sfumato.errors import Unsupported
from sfumato.mechanisms.quantile import QuantileChoice

if TYPE_CHECKING:
    from sfumato.boxes.block_answers import BlockMean, BlockQuantiles
    from sfumato.core.statement import Statement

__all__ = ["described"]

SHOWN = 16  # signs of the digest of the code


def described(query: "BlockMean | BlockQuantiles", said: "Statement", *, rank: int | None = None) -> Description:
    """An aggregate of what a program says; ``rank`` is how many blocks a quantile is at most from its place."""
    dropped = getattr(query, "dropped", None)
    kind = "quantiles" if rank is not None else "mean" if dropped is None else "trimmed_mean"
    if (rank is not None) is not isinstance(said.mechanism, QuantileChoice):
        raise Unsupported("the mechanism is none that answers this question; no text was made.")
    numbers, program = len(said.values), query.program
    figures: dict[str, Word] = {
        "names": Listed(tuple(OneLine(name) for name in query.names)),
        "blocks": f"{query.blocks:,}",
        "code": program.code[:SHOWN],
        "level": program.level,
        "seconds": plain(program.seconds),
        "ranges": Listed(tuple(_held(answer.name, answer.low, answer.high) for answer in query.answers)),
        "missing": Listed(tuple(_named(answer.name, plain(answer.missing)) for answer in query.answers)),
    }
    if rank is not None:
        figures["rank"] = f"{rank:,}"
    if dropped is not None:
        figures["dropped"] = f"{dropped:,}"
    trimmed = () if dropped is None else ("block.trimmed",)
    method: tuple[Paragraph, ...] = (("block.method", "block.box", *trimmed),)
    limits: tuple[Paragraph, ...] = (("block.whole", "block.held", "block.bias"),)
    paragraphs: dict[str, tuple[Paragraph, ...]] = {
        "risk": (("block.hidden",),),
        "method": method,
        "limits": limits,
        "patient_limit": limits,
        "manager_limit": limits,
    }
    facts: dict[str, Word] = {"sensitivity": phrase("block.sensitivity", blocks=figures["blocks"])}
    if rank is not None:
        paragraphs["named"] = (("block.rank",),)
        facts["noise"] = phrase("block.noise_chosen")
    measured = {
        answer.name: MeasuredColumn(words=phrase(f"block.{kind}", name=OneLine(answer.name)))
        for answer in query.answers
        if rank is None
    }
    return Description(
        form=Form.NUMBER if numbers == 1 else Form.NUMBERS,
        numbers=numbers,
        asked=phrase(f"page.block_{kind}"),
        measure=f"measure.block_{kind}",
        figures=figures,
        paragraphs=paragraphs,
        facts=facts,
        measured=measured,
        counts=False,
    )


def _held(name: str, low: Fraction, high: Fraction) -> Word:
    return phrase("block.range", name=OneLine(name), low=plain(low), high=plain(high))


def _named(name: str, value: str) -> Word:
    return phrase("block.value", name=OneLine(name), value=value)
