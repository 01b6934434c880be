"""Attacks and their outcomes."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec

from sfumato.audit.bounds import epsilon_lower_bound, exact_epsilon, gaussian_lower_bound
from sfumato.audit.fit import Played, doubt
from sfumato.core.foreign import Array

__all__ = ["Attack", "Drawn", "Verdict"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What was claimed and what was found.

    A claim is refuted where the proven lower bound of ε lies above it, or where draws do not follow the law that they
    are stated to follow: ``doubt`` is the p-value of that law, None where draws were not compared with one, and
    ``proven`` is None where no bound was sought. ``skipped`` says why nothing was attacked. A claim that stands is not
    thereby proven: these attacks found nothing against it.
    """

    name: str
    kind: str
    method: str
    epsilon: float
    delta: float
    proven: float | None
    confidence: float
    doubt: float | None = None
    skipped: str | None = None

    @property
    def refuted(self) -> bool:
        """Whether the claim cannot be true (with the stated confidence; a hair of float rounding is allowed for)."""
        above = self.proven is not None and self.proven > self.epsilon * (1 + 1e-9) + 1e-12
        return above or (self.doubt is not None and self.doubt <= 1 - self.confidence)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """Two neighbouring inputs put through one mechanism: as exact finite laws, or as samplers of a number.

    ``kind`` names the mechanism attacked; ``here`` and ``there`` take a number of samples (``exact``: none) and return
    the outputs (the probabilities) for the two inputs. ``share`` is how much of the claim the attack must prove on a
    sound mechanism, or it has become blunt; 0 where it looks for something else than the whole loss. With ``curve`` the
    claim is the whole curve of a Gaussian, and the ε proven is that of the least such curve which is not refuted, at δ.
    ``most`` bounds the samples where they are slow to draw, and ``needs`` names an optional part.
    """

    name: str
    kind: str
    epsilon: float
    delta: float
    here: Callable[[int], Array]
    there: Callable[[int], Array]
    exact: bool = False
    share: float = 0.9
    curve: bool = False
    most: int | None = None
    needs: str | None = None

    def run(self, *, samples: int, alpha: float) -> Verdict:
        """Attack; an exact attack needs no samples and leaves no doubt."""
        if (skipped := missing(self.needs)) is not None:
            return _skipped(self, skipped)
        if self.exact:
            proven, method, confidence = exact_epsilon(self.here(0), self.there(0), delta=self.delta), "exact loss", 1.0
        else:
            size = samples if self.most is None else min(samples, self.most)
            bound = gaussian_lower_bound if self.curve else epsilon_lower_bound
            proven = bound(self.here(size), self.there(size), delta=self.delta, alpha=alpha)
            method, confidence = f"{size:,} samples{', by the curve' if self.curve else ''}", 1 - alpha
        return Verdict(
            name=self.name,
            kind=self.kind,
            method=method,
            epsilon=self.epsilon,
            delta=self.delta,
            proven=proven,
            confidence=confidence,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """Draws from the very path that releases take, compared with the law that is stated for them.

    ``play`` takes a number of draws and returns them with the stated law. ``broken`` is the same for a copy that is
    broken on purpose, as ``flaw`` says: without one there is no attack, since nobody would know whether it can see
    anything. ``draws`` is how many are enough for that.
    """

    name: str
    kind: str
    epsilon: float
    delta: float
    play: Callable[[int], Played]
    flaw: str
    broken: Callable[[int], Played]
    draws: int = 20_000
    needs: str | None = None

    @property
    def twin(self) -> "Drawn":
        """The broken copy, which the same test must refute."""
        return replace(self, name=f"{self.name}: {self.flaw}", play=self.broken)

    def run(self, *, samples: int, alpha: float) -> Verdict:
        """Draw and compare; refutes a true law with probability α at most."""
        if (skipped := missing(self.needs)) is not None:
            return _skipped(self, skipped)
        played = self.play(min(samples, self.draws))
        return Verdict(
            name=self.name,
            kind=self.kind,
            method=f"{len(played.draws):,} draws, against their distribution",
            epsilon=self.epsilon,
            delta=self.delta,
            proven=None,
            confidence=1 - alpha,
            doubt=doubt(played),
        )


def missing(needs: str | None) -> str | None:
    """Why something cannot be attacked here, if an optional part is not installed."""
    if needs is None or find_spec(needs) is not None:
        return None
    return "not attacked: needs sfumato[learning]"


def _skipped(attack: Attack | Drawn, why: str) -> Verdict:
    return Verdict(
        name=attack.name,
        kind=attack.kind,
        method=why,
        epsilon=attack.epsilon,
        delta=attack.delta,
        proven=None,
        confidence=0.0,
        skipped=why,
    )
