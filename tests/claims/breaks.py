"""What is broken on purpose, and the claims whose tests have to notice: ``python -m tests.claims.breaks``.

Each function below is one break. It takes what stands at ``at`` and gives what takes its place: the product with one
plausible fault, never one that merely crashes. All product code is found by name, so that a break whose place is gone
fails instead of breaking nothing. How to add one: CONTRIBUTING.md.
"""

import argparse
import dataclasses
import sys
import tempfile
from collections.abc import Callable, Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

from tests.claims.breaking import Break, Replacement, Verdict, judged
from tests.mutation.forked import Unusable

__all__ = ["BREAKS", "pairs_of"]

BREAKS: list[Break] = []
LESS = Fraction(7, 10)  # of the noise that was charged for


def broken(
    *at: str, claims: Iterable[str], first: Iterable[str] = (), fast: bool = False
) -> Callable[[Replacement], Replacement]:
    """Put a break on the list; its name is that of the function."""

    def listed(replace: Replacement) -> Replacement:
        name = replace.__name__.replace("_", " ")
        BREAKS.append(
            Break(name=name, claims=tuple(claims), at=at, replace=replace, first=tuple(first), fast=fast)
        )
        return replace

    return listed


def with_less(field: str, factor: Fraction = LESS) -> Replacement:
    """A method that runs on a copy of its object on which one field is ``factor`` times as large."""

    def replace(original: Any) -> Any:
        def run(self: Any, *args: Any, **named: Any) -> Any:
            return original(dataclasses.replace(self, **{field: getattr(self, field) * factor}), *args, **named)

        return run

    return replace


# ---------------------------------------------------------------------------------------------------- calculus


@broken("sfumato.mechanisms.exponential:Exponential.choose", claims=["S0-01", "X-02"])
def exponential_mechanism_names_the_best(_original: Any) -> Any:
    return lambda self, scores, words: max(range(len(scores)), key=lambda place: scores[place])


@broken("sfumato.mechanisms.exponential:PermuteAndFlip.choose", claims=["S0-01", "X-02"])
def permute_and_flip_names_the_best(_original: Any) -> Any:
    return lambda self, scores, words: max(range(len(scores)), key=lambda place: scores[place])


@broken("sfumato.mechanisms.laplace:Laplace.add_noise", claims=["S2-12", "X-02", "S1-04"])
def laplace_noise_is_30_percent_too_small(original: Any) -> Any:
    return with_less("scale")(original)


@broken("sfumato.mechanisms.gaussian:Gaussian.add_noise", claims=["S2-04", "X-02"])
def gaussian_noise_is_30_percent_too_small(original: Any) -> Any:
    return with_less("sigma")(original)


@broken("sfumato.noise.lattice:sample_discrete_laplace", claims=["X-01"])
def the_laplace_sampler_draws_30_percent_too_close(original: Any) -> Any:
    return lambda scale, size, words: original(scale * LESS, size, words)


@broken("sfumato.mechanisms.randomized_response:RandomizedResponse.exponents", claims=["S2-01"])
def randomised_response_at_twice_epsilon(original: Any) -> Any:
    return lambda self, truth: [2 * exponent for exponent in original(self, truth)]


@broken("sfumato.accounting.basic:compose", claims=["S4-02", "S4-03", "S1-32"])
def composition_by_the_maximum(original: Any) -> Any:
    def compose(events: Any) -> Any:
        from sfumato.accounting.basic import counted
        from sfumato.core.guarantees import Pure

        parts = [original(event) for event in counted(events)]
        return max(parts, key=lambda part: part.epsilon) if parts else Pure(epsilon=Fraction(0))

    return compose


@broken("sfumato.core.sensitivity:Sensitivity.joint", claims=["S0-02"])
def a_joint_release_is_charged_for_its_largest_part(_original: Any) -> Any:
    def joint(parts: Any) -> Any:
        return max(parts, key=lambda part: part.l1.value if part.l1 else 0)

    return joint


@broken("sfumato.core.budget:Budget.judged", claims=["S2-03"])
def a_delta_of_one_in_n_is_let_through(_original: Any) -> Any:
    return lambda self, population: self


@broken("sfumato.reports.catalogue:messages", claims=["S2-02"])
def a_user_text_calls_delta_the_probability_of_a_leak(original: Any) -> Any:
    def messages(language: str) -> Any:
        said = "delta is the probability of a leak" if language == "en" else "δ 是泄露的概率"
        return {
            name: f"{text} ({said})" if name.endswith("guarantee_delta") else text
            for name, text in original(language).items()
        }

    return messages


@broken("sfumato.mechanisms.sparse_vector:SparseVector.query_scale", claims=["S4-14", "X-02"])
def alarms_have_half_the_noise(original: Any) -> Any:
    return lambda self: original(self) / 2


@broken("sfumato.mechanisms.sparse_vector:Watch.check", claims=["S4-14", "S4-15"])
def a_watch_never_stops(original: Any) -> Any:
    def check(self: Any, value: int) -> Any:
        self._left = max(self._left, 2)
        return original(self, value)

    return check


@broken("sfumato.mechanisms.threshold:NoisyThreshold.show", claims=["X-03"])
def keys_are_shown_above_a_threshold_without_delta(original: Any) -> Any:
    return lambda self, counts, words: original(dataclasses.replace(self, threshold=self.most + 1), counts, words)


@broken("sfumato.mechanisms.quantile:QuantileChoice.choose", claims=["X-04"])
def quantiles_are_chosen_at_twice_epsilon(original: Any) -> Any:
    return with_less("epsilon", Fraction(2))(original)


@broken("sfumato.core.guarantees:Approximate.group", "sfumato.core.guarantees:Pure.group", claims=["X-05"])
def a_group_is_charged_as_one(_original: Any) -> Any:
    return lambda self, size: self


@broken("sfumato.core.conversions:convert", claims=["X-06"])
def guarantees_are_carried_over_between_relations(_original: Any) -> Any:
    return lambda guarantee, *, held, wanted, enforced=None: guarantee


@broken("sfumato.accounting.zcdp:rho_of", claims=["X-08", "S1-03"])
def rho_is_halved(original: Any) -> Any:
    def rho_of(event: Any) -> Any:
        rho, delta = original(event)
        return rho / 2, delta

    return rho_of


@broken("sfumato.accounting.subsampling:_amplified", claims=["S3-01"])
def sampling_amplifies_by_its_square(original: Any) -> Any:
    return lambda guarantee, share: original(guarantee, share * share)


@broken("sfumato.mechanisms.matrix.measurement:system_draw", claims=["S0-04"])
def matrix_noise_is_30_percent_too_small(original: Any) -> Any:
    def system_draw(norm: str) -> Any:
        factor = LESS if norm == "l1" else LESS**2
        return lambda noise, size: original(norm)(noise * factor, size)

    return system_draw


# -------------------------------------------------------------------------------------------------------- releases


@broken("sfumato.core.adversary:belief", claims=["S1-30"])
def the_belief_of_an_adversary_is_worked_out_for_half_of_epsilon(original: Any) -> Any:
    def belief(guarantee: Any, prior: Any) -> Any:
        return original(dataclasses.replace(guarantee, epsilon=guarantee.epsilon / 2), prior)

    return belief


@broken("sfumato.reports.publication:Publication.__post_init__", claims=["S1-25", "S1-33"])
def a_publication_needs_no_reason(_original: Any) -> Any:
    return lambda self: None


@broken("sfumato.reports.comparison:_epsilon", claims=["S0-34"])
def other_units_are_said_to_cost_the_same(original: Any) -> Any:
    first: list[Any] = []

    def epsilon(mechanism: Any, moved: Any, delta: Any) -> Any:
        first.append(original(mechanism, moved, delta))
        return first[0]

    return epsilon


@broken("sfumato.laws.margins:Whole.margin", claims=["S1-31"])
def margins_are_halved(original: Any) -> Any:
    return lambda self, *args, **named: original(self, *args, **named) // 2


# ---------------------------------------------------------------------------------------------------------- tables


@broken("sfumato.engines.bounded:kept_rows", claims=["S1-04", "X-07"])
def the_limit_of_groups_is_not_enforced(original: Any) -> Any:
    def kept_rows(table: Any, *, share: Any, **named: Any) -> Any:
        from sfumato.core.limits import Limit

        if share is not None:
            limit = Limit(groups=10**6, rows_per_group=share.limit.rows_per_group)
            share = dataclasses.replace(share, limit=limit)
        return original(table, share=share, **named)

    return kept_rows


@broken("sfumato.engines.lattice:_held", claims=["S1-05", "X-07"])
def values_are_not_clipped(_original: Any) -> Any:
    return lambda number, low, high: number


@broken("sfumato.inference.adjusted:nearest_table", claims=["S1-06"])
def a_table_does_not_keep_its_total(original: Any) -> Any:
    return lambda values, total: original(values, total + 1)


@broken("sfumato.mechanisms.quantile_search:slot", claims=["X-04"])
def the_rank_of_a_quantile_is_off_by_a_tenth(original: Any) -> Any:
    def slot(group: Any, first: int, end: int, share: Fraction, rate: Fraction, words: Any) -> int:
        return original(group, first, end, min(share + Fraction(1, 10), Fraction(1)), rate, words)  # type: ignore[no-any-return]

    return slot


# ---------------------------------------------------------------------------------------------------------- ledger


@broken("sfumato.governance.books:admit", claims=["S1-23", "S1-19", "S1-24", "X-10"])
def the_ledger_lets_caps_be_passed(_original: Any) -> Any:
    return lambda books, entry: None


@broken("sfumato.accounting.filters:BasicFilter.admits", claims=["S4-03"])
def the_ledger_in_memory_lets_caps_be_passed(_original: Any) -> Any:
    return lambda self, cost: True


@broken("sfumato.governance.verify:_linked", claims=["S1-21", "S1-03"])
def the_chain_of_hashes_is_not_checked(_original: Any) -> Any:
    return lambda row, entry, number, digest: iter(())


@broken("sfumato.governance.minutes:Minutes.vetoes", claims=["S1-28"])
def a_veto_is_ignored(_original: Any) -> Any:
    return lambda self, dataset: ()


@broken("sfumato.governance.consent:check", claims=["S1-27"])
def consent_is_not_checked(_original: Any) -> Any:
    return lambda use, terms, day: None


# ---------------------------------------------------------------------------------------------------------- graphs


@broken(
    "sfumato.graphs.queries.edges:EdgeCount.exact",
    "sfumato.graphs.queries.histogram:EdgesAndDegrees.exact",
    claims=["S0-13", "S0-08"],
)
def edges_are_counted_twice(original: Any) -> Any:
    def exact(self: Any, graph: Any) -> list[int]:
        edges, *others = original(self, graph)
        return [2 * edges, *others]

    return exact


@broken("sfumato.graphs.projection:projected", claims=["S0-08"])
def the_cap_on_degrees_is_not_applied(_original: Any) -> Any:
    return lambda graph, keys, cap: graph


@broken("sfumato.graphs.local_sensitivity:Front.rungs", claims=["S0-10"])
def the_rungs_of_the_ladder_are_half_as_wide(original: Any) -> Any:
    def rungs(self: Any, nodes: int) -> Any:
        from sfumato.core.rungs import Rungs

        first, *others = original(self, nodes).runs
        return Rungs.of([dataclasses.replace(first, amount=first.amount // 2), *others])

    return rungs


@broken("sfumato.mechanisms.top_set:TopSet.choose", claims=["S0-16"])
def the_top_nodes_are_the_true_ones(_original: Any) -> Any:
    def choose(self: Any, counts: Any, words: Any) -> tuple[int, ...]:
        return tuple(sorted(sorted(range(len(counts)), key=lambda place: -counts[place])[: self.choices]))

    return choose


# --------------------------------------------------------------------------------------------------------- streams


@broken("sfumato.streams.noise:SeriesNoise.drawn", claims=["X-02", "S4-18"])
def the_noise_of_streams_is_30_percent_too_small(original: Any) -> Any:
    return with_less("noise")(original)


@broken(
    "sfumato.streams.toeplitz:Toeplitz.squared",
    "sfumato.streams.tree:Tree.squared",
    "sfumato.streams.buffers:Buffers.squared",
    "sfumato.streams.rows:Rows.squared",
    claims=["S4-09", "S4-10"],
)
def the_sensitivity_of_strategies_is_halved(original: Any) -> Any:
    return lambda self, pattern: original(self, pattern) // 4


@broken("sfumato.streams.people:People._room", claims=["S4-08", "S4-09"])
def a_person_counts_in_every_step(_original: Any) -> Any:
    return lambda self, name, step: self._each


# -------------------------------------------------------------------------------------------------------- learning


@broken("sfumato.learning.lattice:NoisyLattice._drawn", claims=["X-02", "S1-12", "S3-02"])
def the_noise_of_training_is_a_tenth(original: Any) -> Any:
    def drawn(self: Any, size: int, used: Any) -> Any:
        found = original(self, size, used)
        found[:size] //= 10
        return found

    return drawn


@broken("sfumato.learning.sampling:poisson_sample", claims=["X-02", "S1-13"])
def everybody_is_in_every_sample(_original: Any) -> Any:
    def poisson_sample(number: int, rate: Fraction, words: Any) -> Any:
        import numpy as np

        return np.arange(number)

    return poisson_sample


@broken("sfumato.learning.engine.clipping:factors", claims=["S1-12", "S3-02", "S1-13"])
def gradients_are_not_clipped(original: Any) -> Any:
    return lambda squared, spread, present, clip: original(squared, None, present, 1e12)


@broken("sfumato.learning.adaptive:AdaptiveClip.squared", claims=["S3-02"])
def the_count_of_an_adaptive_clip_is_not_charged(_original: Any) -> Any:
    return lambda self, for_sums, *, moved: for_sums**2


@broken("sfumato.learning.paradigms.voting:moved_teachers", claims=["S3-07"])
def teachers_move_by_half(original: Any) -> Any:
    return lambda unit, limit: Fraction(original(unit, limit), 2)


# ------------------------------------------------------------------------------------------------------ the command


def pairs_of(breaks: Iterable[Break], claims: Iterable[str] = ()) -> list[tuple[Break, str]]:
    """Each break with each of its claims, or with those of them that are wanted."""
    wanted = set(claims)
    return [(each, number) for each in breaks for number in each.claims if not wanted or number in wanted]


def main(arguments: list[str] | None = None) -> int:
    """Run and print a table; 0 when every claim notices its breaks, 1 when some do not, 2 when the run went wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.claims.breaks", description=__doc__.splitlines()[0])
    parser.add_argument("--break", dest="names", action="append", default=[], metavar="WORDS", help="part of a name")
    parser.add_argument("--claim", dest="claims", action="append", default=[], metavar="NUMBER")
    parser.add_argument("--fast", action="store_true", help="the few that every run of the tests tries")
    parser.add_argument("--jobs", type=int, default=1)
    asked = parser.parse_args(arguments)
    chosen = [it for it in BREAKS if (it.fast or not asked.fast)]
    chosen = [it for it in chosen if not asked.names or any(words in it.name for words in asked.names)]
    pairs = pairs_of(chosen, asked.claims)
    if not pairs:
        print("no such break")
        return 2
    missed = 0
    print("break | claim | caught by")
    with tempfile.TemporaryDirectory() as folder:
        try:
            for verdict in judged(pairs, jobs=asked.jobs, logs=Path(folder)):
                missed += not verdict.caught
                print(_line(verdict), flush=True)
        except Unusable as wrong:
            print(f"the run is of no use: {wrong}")
            return 2
    print(f"{len(pairs) - missed} of {len(pairs)} caught")
    return 1 if missed else 0


def _line(verdict: Verdict) -> str:
    by = verdict.by if verdict.caught else f"NOBODY {verdict.note}".rstrip()
    return f"{verdict.broken} | {verdict.claim} | {by} ({verdict.seconds:.0f} s)"


if __name__ == "__main__":
    sys.exit(main())
