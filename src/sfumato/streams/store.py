"""The streams of a vault: their public facts, and the sessions that answer them."""

import secrets
from collections.abc import Sequence

from sfumato.core.deprecation import renamed
from sfumato.core.exact import natural
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset
from sfumato.core.units import User
from sfumato.errors import InvalidInput, NotDeclared
from sfumato.gate.setting import Setting
from sfumato.mechanisms.matrix.steps.doubling import BLOCKS, FIRST
from sfumato.streams import STREAM_QUERIES
from sfumato.streams.stream import Stream

__all__ = ["StreamStore"]


class StreamStore:
    """Where streams are declared; what they count is handed over step by step, and kept by their sessions."""

    def __init__(self, setting: Setting) -> None:
        self._sessions = setting.sessions(STREAM_QUERIES, what="stream")

    @renamed(each="max_per_event")
    def declare(
        self,
        *,
        name: str | None = None,
        horizon: int | None = None,
        version: str | None = None,
        bounds: tuple[int, int] = (0, 1_000_000),
        max_per_event: int = 1,
        window: int = 1,
        limit: Limit | None = None,
        separation: int = 1,
        groups: Sequence[str] = (),
        late: str = "refuse",
    ) -> Stream:
        """Declare a stream of ``horizon`` steps: whole numbers that are handed over as they come.

        Where nobody knows how long it will be, leave ``horizon`` out: it may then have up to 131,008 steps, and its
        error grows with those that were made.

        The number of a step is held to ``bounds`` without a word. One event counts from 0 to ``max_per_event`` in it,
        and from −``max_per_event`` where the bounds go below 0; with ``window=w`` the events of any w steps, one in
        each, are protected together. Where users are protected, ``limit`` says in how many steps a person counts
        (``groups``) and how often in one (``rows_per_group``), and ``separation`` how many steps apart; the stream
        enforces it. ``groups`` are public names: then each step has a
        number for each. ``late`` says what becomes of a step that was released already: ``refuse``, or ``now``.

        >>> import sfumato as sf
        >>> vault = sf.Vault(unit=sf.event(relation="add/remove"), budget=sf.Budget(epsilon=2, delta=1e-6), name="er")
        >>> total = vault.stream(name="er", horizon=60).running_total().open(epsilon=1, delta=1e-7)
        >>> total.add(17).step, vault.left.epsilon
        (1, Fraction(1, 1))
        """
        if name is None:
            raise NotDeclared("a stream needs a public name, which its releases state. Say name='arrivals'.")
        if isinstance(groups, str) or not all(isinstance(group, str) for group in groups):
            raise InvalidInput("groups are a list of names; nothing was done.")
        if limit is not None and not isinstance(limit, Limit):
            raise InvalidInput("a limit is sf.Limit(groups=…, rows_per_group=…); nothing was done.")
        if limit is not None and max_per_event != 1:
            raise InvalidInput(
                "limit says how much a person counts in a step; nothing was done. Leave max_per_event out."
            )
        unknown = horizon is None
        horizon = FIRST * (2**BLOCKS - 1) if horizon is None else horizon
        if isinstance(self._sessions.unit, User):
            if window != 1:
                raise InvalidInput("a window is for events; nothing was done. Of a person, limit says what counts.")
            times = horizon if limit is None else min(limit.groups, horizon)
            counts = max_per_event if limit is None else limit.rows_per_group
        elif limit is not None or separation != 1:
            raise InvalidInput(
                "a limit is for persons; nothing was done. Of events, window says what is protected together."
            )
        else:
            times, counts = min(natural(window, "window"), natural(horizon, "horizon")), max_per_event
        if not isinstance(bounds, tuple | list) or len(bounds) != 2:
            raise InvalidInput("the bounds of a step are a pair (low, high); nothing was done.")
        return Stream(
            gate=self._sessions,
            dataset=Dataset(name=name, edition=secrets.token_hex(8) if version is None else version),
            horizon=horizon,
            lower=bounds[0],
            upper=bounds[1],
            max_per_event=counts,
            times=times,
            separation=separation,
            late=late,
            groups=tuple(groups),
            unknown=unknown,
        )
