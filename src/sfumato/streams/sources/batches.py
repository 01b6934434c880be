"""Spark Structured Streaming: one batch is one step, and a batch that Spark repeats does not count again."""

from collections.abc import Callable

from sfumato.core.exact import natural
from sfumato.core.foreign import Frame
from sfumato.core.interrupts import FAILED, attempt
from sfumato.engines.dialects.spark import SPARK, our_settings
from sfumato.errors import EngineFailed, InvalidInput, Refused, SfumatoError
from sfumato.streams.sources.open_stream import Answer, OpenStream, declared, has_ended, is_of_people, tell

__all__ = ["each_batch"]

NUMBERS = ("byte", "short", "integer", "long")
FAR = 2**40  # the farthest that anything may count
ENDED = (
    "This stream has ended: nothing was released of the batch that failed, the charge counts, and this version of the "
    "data is closed. Check what the batches are made from, then declare the stream as a new version."
)


def each_batch(
    stream: OpenStream,
    *,
    person: str | None = None,
    amount: str | None = None,
    group: str | None = None,
    told: Callable[[int, Answer], None] | None = None,
    first: int = 0,
) -> Callable[[Frame, int], None]:
    """A function for ``writeStream.foreachBatch``: batch ``first`` is step 1, the one after it step 2, and so on.

    Rows are counted where they are, by Spark: the ``amount`` of each is held to what an event may count (without it
    each counts 1), and of each ``person`` one number reaches the driver, what they have in the step. Rows without a
    person, an amount, or a declared ``group`` do not count. ``told`` is called with the step and what was released.

    Guarantee: a batch counts once. Spark repeats a batch whose end it has not written down; its number says that its
    step was released already. So the checkpoint of Spark and the state of the stream belong together: keep both or
    none. Batches that were left out count 0. After the horizon or the last alarm further batches do nothing.

    A batch that cannot be counted ends the stream for good, as a failing engine closes a table: whether the next one
    can could reveal what a row holds. The charge is kept, and this version of the stream's data is closed.

    Public: which batches there are and when they run. Spark runs none where no rows came, which shows that none did:
    union the stream with Spark's own ``rate`` source, whose rows do not count, so that there is one at every trigger.
    """
    query = declared(stream)
    people, groups = is_of_people(stream), getattr(query, "groups", ())
    if people is (person is None):
        raise InvalidInput(
            "say person=… where persons are protected, and only there; nothing was done."
            if people
            else "this stream protects events and not persons; nothing was done. Leave person out."
        )
    if bool(groups) is (group is None):
        raise InvalidInput(
            "a stream with groups needs the column of its groups, one without has none; nothing was done."
        )
    natural(first, "first", least=0)
    least = 0 if query.lower == 0 else -query.each

    def read(batch: Frame) -> object:
        if people:
            return _people(batch, str(person), amount, group, groups, query.each)
        return _numbers(batch, amount, group, groups, least, query.each)

    def step(batch: Frame, number: int) -> None:
        with stream.uninterrupted():  # the same batch again, in another thread, waits and finds that it was released
            counted(batch, number)

    def counted(batch: Frame, number: int) -> None:
        place = number - first + 1
        if stream.failed:
            raise Refused(ENDED)
        if place <= stream.steps or has_ended(stream):
            return
        if place > stream.steps + 1 and stream.steps == 0:
            raise Refused(
                f"this stream begins with batch {first} and was given batch {number}; nothing was released. Its "
                f"checkpoint has been used before: say first={number}, or take a new one."
            )
        held = _answered(stream, batch, lambda: read(batch))
        while stream.steps < place and not has_ended(stream):
            found = tell(stream, held if stream.steps + 1 == place else None)
            if told is not None:
                told(stream.steps, found)

    return step


def _answered(stream: OpenStream, batch: Frame, read: Callable[[], object]) -> object:
    """Let Spark count. Whatever it raises may reveal a row, and ends here, with the stream; a real Ctrl-C goes on.

    Refusals of this module give their reason: they look at the columns alone.
    """

    def answered() -> tuple[object] | SfumatoError:
        try:
            with our_settings(batch.sparkSession):
                return (read(),)
        except SfumatoError as ours:
            return ours

    found = attempt(answered)
    if isinstance(found, SfumatoError):
        raise found
    if found is FAILED:
        if stream.fail():
            raise EngineFailed(f"Spark could not count a batch. {ENDED}")
        raise Refused(ENDED)
    return found[0]


def _people(
    batch: Frame, person: str, amount: str | None, group: str | None, groups: tuple[str, ...], each: int
) -> object:
    """What each person has in a step, held to what may count; ids by their bytes, whatever the column's collation."""
    kept = [f"{_bytes(batch, person)} as who", *([] if group is None else [f"{_bytes(batch, group)} as part"])]
    rows = batch.selectExpr(*kept, f"{_held(batch, amount, 0, FAR)} as held").where("who is not null and held > 0")
    added = rows.groupBy(*(["who"] if group is None else ["part", "who"])).agg({"held": "sum"})
    found: dict[str | None, dict[str, int]] = {name: {} for name in groups}
    for row in added.selectExpr("*", f"cast(least(`sum(held)`, {each}) as string) as has").toLocalIterator():
        name, where = _text(row["who"]), None if group is None else _text(row["part"])
        if name is not None and (not groups or where in found):
            found.setdefault(where, {})[name] = int(row["has"])
    return found if groups else found.get(None, {})


def _numbers(
    batch: Frame, amount: str | None, group: str | None, groups: tuple[str, ...], least: int, most: int
) -> object:
    """Sums of amounts that are held to what one event may count."""
    held = f"{_held(batch, amount, least, most)} as held"
    if group is None:
        (row,) = batch.selectExpr(held).selectExpr("cast(coalesce(sum(held), 0) as string) as total").collect()
        return int(row["total"])
    parts = batch.selectExpr(held, f"{_bytes(batch, group)} as part").groupBy("part").agg({"held": "sum"})
    found = dict.fromkeys(groups, 0)
    for row in parts.selectExpr("part", "cast(coalesce(`sum(held)`, 0) as string) as total").toLocalIterator():
        name = _text(row["part"])
        if name in found:
            found[str(name)] = int(row["total"])
    return found


def _held(batch: Frame, amount: str | None, least: int, most: int) -> str:
    """What a row counts, in numbers whose sum cannot run over; missing where the amount is."""
    if amount is None:
        return "cast(1 as decimal(38, 0))"
    column = _column(batch, amount)
    kind = next(field.dataType.typeName() for field in batch.schema if field.name == amount)
    if kind not in NUMBERS:
        raise InvalidInput(f"column {amount!r} must hold whole numbers; nothing was released.")
    inside = f"cast(least(greatest({column}, {least}), {most}) as decimal(38, 0))"
    return f"case when {column} is not null then {inside} end"  # least and greatest pass over what is missing


def _bytes(batch: Frame, name: str) -> str:
    return f"hex(cast({_column(batch, name)} as string))"


def _column(batch: Frame, name: str) -> str:
    """The column as it is named in SQL; that it is there is public."""
    if name not in batch.columns:
        raise InvalidInput(f"the batches have no column {name!r}; nothing was released.")
    return SPARK.quoted(name)


def _text(written: str | None) -> str | None:
    """A text from its bytes; None where they are no text."""
    if written is None:
        return None
    try:
        return bytes.fromhex(written).decode("utf-8")
    except ValueError:
        return None
