"""What is broken on purpose, and the claims whose tests have to notice: ``python -m tests.claims.breaks``.

Each function below is one break. It takes what stands at ``at`` and gives what takes its place: the product with one
plausible fault, never one that merely crashes. All product code is found by name, so that a break whose place is gone
fails instead of breaking nothing. How to add one: CONTRIBUTING.md.
"""

import argparse
import dataclasses
import string
import sys
import tempfile
from collections.abc import Callable, Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

from tests.claims.breaking import Break, Replacement, Verdict, judged
from tests.mutation.forked import Unusable

__all__ = ["BREAKS", "broken", "pairs_of", "with_less"]

BREAKS: list[Break] = []
LESS = Fraction(7, 10)  # of the noise that was charged for


def broken(
    *at: str, claims: Iterable[str], first: Iterable[str] = (), fast: bool = False
) -> Callable[[Replacement], Replacement]:
    """Put a break on the list; its name is that of the function."""

    def listed(replace: Replacement) -> Replacement:
        name = replace.__name__.replace("_", " ")
        BREAKS.append(Break(name=name, claims=tuple(claims), at=at, replace=replace, first=tuple(first), fast=fast))
        return replace

    return listed


def with_less(field: str, factor: Fraction = LESS) -> Replacement:
    """A method that runs on a copy of its object on which one field is ``factor`` times as large."""

    def replace(original: Any) -> Any:
        def run(self: Any, *args: Any, **named: Any) -> Any:
            return original(dataclasses.replace(self, **{field: getattr(self, field) * factor}), *args, **named)

        return run

    return replace


def _halved(original: Any) -> Any:
    """A sensitivity that is half of what it should be."""

    def sensitivity(*args: Any, **named: Any) -> Any:
        from sfumato.core.sensitivity import Sensitivity

        found = original(*args, **named)
        l1, l2, linf = found.l1, found.l2, found.linf
        return Sensitivity.of(
            l0=None if found.l0 is None else found.l0.count,
            l1=None if l1 is None else l1.value / 2,
            l2_squared=None if l2 is None else l2.squared / 4,
            linf=None if linf is None else linf.value / 2,
        )

    return sensitivity


# ---------------------------------------------------------------------------------------------------- calculus


@broken("sfumato.mechanisms.exponential:Exponential.choose", claims=["S0-01", "X-02"], first=["test_draws"])
def exponential_mechanism_names_the_best(_original: Any) -> Any:
    return lambda self, scores, words: max(range(len(scores)), key=lambda place: scores[place])


@broken("sfumato.mechanisms.exponential:PermuteAndFlip.choose", claims=["S0-01", "X-02"], first=["test_draws"])
def permute_and_flip_names_the_best(_original: Any) -> Any:
    return lambda self, scores, words: max(range(len(scores)), key=lambda place: scores[place])


@broken(
    "sfumato.mechanisms.laplace:Laplace.add_noise",
    claims=["S2-12", "X-02", "S1-04", "S2-14", "S0-05", "S0-09", "S4-20"],
    first=["tests/product"],
)
def laplace_noise_is_30_percent_too_small(original: Any) -> Any:
    return with_less("scale")(original)


@broken("sfumato.mechanisms.gaussian:Gaussian.add_noise", claims=["S2-04", "X-02", "S4-20"], first=["tests/product"])
def gaussian_noise_is_30_percent_too_small(original: Any) -> Any:
    return with_less("sigma")(original)


@broken("sfumato.noise.lattice:sample_discrete_laplace", claims=["X-01"])
def the_laplace_sampler_draws_30_percent_too_close(original: Any) -> Any:
    return lambda scale, size, words: original(scale * LESS, size, words)


@broken("sfumato.mechanisms.randomized_response:RandomizedResponse.exponents", claims=["S2-01"], fast=True)
def randomised_response_at_twice_epsilon(original: Any) -> Any:
    return lambda self, truth: [2 * exponent for exponent in original(self, truth)]


@broken("sfumato.accounting.composition:compose", claims=["S4-02", "S4-03"])
def composition_by_the_maximum(original: Any) -> Any:
    def compose(events: Any) -> Any:
        from sfumato.accounting.event_counts import event_counts
        from sfumato.core.guarantees import Pure

        parts = [original(event) for event in event_counts(events)]
        return max(parts, key=lambda part: part.epsilon) if parts else Pure(epsilon=Fraction(0))

    return compose


@broken("sfumato.governance.balances:Balance.moved", claims=["S4-02", "S4-03", "S1-32"])
def an_account_keeps_its_largest_charge_alone(original: Any) -> Any:
    def moved(self: Any, cost: Any, loss: Any, **counts: int) -> Any:
        found = original(self, cost, loss, **counts)
        return dataclasses.replace(found, epsilon_spent=max(self.epsilon_spent, cost.epsilon))

    return moved


@broken("sfumato.core.sensitivity:Sensitivity.joint", claims=["S0-02"])
def a_joint_release_is_charged_for_its_largest_part(_original: Any) -> Any:
    def joint(parts: Any) -> Any:
        return max(parts, key=lambda part: part.l1.value if part.l1 else 0)

    return joint


@broken("sfumato.graphs.queries.histogram:EdgesAndDegrees.sensitivity", claims=["S0-02", "S0-13"])
def edges_and_degrees_are_charged_as_degrees_alone(_original: Any) -> Any:
    def sensitivity(self: Any, unit: Any, limit: Any) -> Any:
        from sfumato.graphs.queries.histogram import histogram_moves
        from sfumato.graphs.shape import Direction

        return histogram_moves(unit, self.shape, Direction.TOTAL, size=self.size)

    return sensitivity


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


@broken("sfumato.mechanisms.sparse_vector:SparseVector.query_scale", claims=["S4-14", "X-02"], first=["tests/product"])
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


@broken("sfumato.accounting.zcdp:rho_of", claims=["X-08", "S1-03", "S4-07"])
def rho_is_halved(original: Any) -> Any:
    def rho_of(event: Any) -> Any:
        rho, delta = original(event)
        return rho / 2, delta

    return rho_of


@broken("sfumato.accounting.subsampling:_amplified", claims=["S3-01"])
def sampling_amplifies_by_its_square(original: Any) -> Any:
    return lambda guarantee, share: original(guarantee, share * share)


@broken(
    "sfumato.mechanisms.matrix.declaration:MatrixNoise.add_noise", claims=["S0-04", "S0-20"], first=["tests/product"]
)
def matrix_noise_is_30_percent_too_small(original: Any) -> Any:
    def add_noise(self: Any, exact: Any, words: Any) -> Any:
        return with_less("noise", LESS if self.norm == "l1" else LESS**2)(original)(self, exact, words)

    return add_noise


@broken("sfumato.mechanisms.matrix.gls:covariance", claims=["S0-04"])
def the_covariance_of_least_squares_is_halved(original: Any) -> Any:
    return lambda *args, **named: original(*args, **named) / 2


@broken("sfumato.mechanisms.matrix.lattice:Matrix.total", claims=["S0-05"])
def the_error_of_a_strategy_leaves_its_sensitivity_out(original: Any) -> Any:
    return lambda self: original(self) / self.largest


@broken("sfumato.graphs.queries.degrees:Degrees.sensitivity", claims=["S0-05"], first=["tests/product"])
def degrees_are_said_to_move_at_one_end(original: Any) -> Any:
    return _halved(original)


@broken("sfumato.mechanisms.k_norm:DegreeNoise.add_noise", claims=["S0-03"])
def noise_in_the_norm_of_degrees_is_at_twice_epsilon(original: Any) -> Any:
    return with_less("epsilon", Fraction(2))(original)


@broken("sfumato.accounting.filters:open_filter", claims=["X-09"])
def loss_distributions_are_taken_for_a_filter(original: Any) -> Any:
    def open_filter(budget: Any, *, method: str, order: Any = None) -> Any:
        return original(budget, method="basic" if method == "pld" else method, order=order)

    return open_filter


@broken("sfumato.core.adversary:total_variation", claims=["S4-17"])
def the_advantage_of_an_adversary_leaves_delta_out(original: Any) -> Any:
    def total_variation(guarantee: Any) -> Any:
        from sfumato.core.guarantees import Pure

        return original(Pure(epsilon=guarantee.epsilon) if hasattr(guarantee, "delta") else guarantee)

    return total_variation


@broken("sfumato.governance.memory:MemoryLedger.stored", claims=["S4-01", "S1-01"])
def a_stored_answer_is_drawn_anew(_original: Any) -> Any:
    return lambda self, key, datasets=(): None


@broken("sfumato.core.noise_multiplier:exact_multiplier", claims=["S2-06"])
def exact_calibration_is_one_percent_short(original: Any) -> Any:
    return lambda *, epsilon, delta: original(epsilon=epsilon, delta=delta) * Fraction(99, 100)


@broken("sfumato.core.noise_multiplier:exact_multiplier", claims=["S2-07"])
def exact_calibration_is_inverse_in_epsilon(original: Any) -> Any:
    return lambda *, epsilon, delta: original(epsilon=1, delta=delta) / Fraction(epsilon)


@broken("sfumato.core.noise_multiplier:exact_multiplier", claims=["S2-06", "S2-08"])
def exact_calibration_forgets_delta(original: Any) -> Any:
    return lambda *, epsilon, delta: original(epsilon=epsilon, delta=Fraction(1, 10**6))


@broken("sfumato.core.noise_multiplier:classical_multiplier", claims=["S2-05"])
def the_classical_formula_is_used_at_every_epsilon(original: Any) -> Any:
    def classical_multiplier(*, epsilon: Any, delta: Any) -> Any:
        small = Fraction(1, 2)
        return original(epsilon=small, delta=delta) * small / Fraction(epsilon)

    return classical_multiplier


@broken("sfumato.mechanisms.gaussian:_l2", claims=["S2-09"])
def an_l1_bound_is_taken_for_an_l2_bound(original: Any) -> Any:
    def l2(bound: Any) -> Any:
        from sfumato.core.sensitivity import L1

        return original(bound.value if isinstance(bound, L1) else bound)

    return l2


@broken("sfumato.tables.queries.count:Count.sensitivity", claims=["S2-10", "S1-04", "S1-18"])
def counts_are_said_to_move_by_half(original: Any) -> Any:
    return _halved(original)


@broken("sfumato.mechanisms.advisor:least_noise", claims=["S2-13"])
def the_advisor_takes_laplace_noise_always(original: Any) -> Any:
    return lambda moved, *, epsilon, delta, **named: original(
        moved, epsilon=epsilon, delta=0 if moved.l1 else delta, **named
    )


@broken("sfumato.accounting.advanced:_spread", claims=["S4-04"])
def advanced_composition_spreads_by_half(original: Any) -> Any:
    return lambda squares, room: original(squares, room) / 2


@broken("sfumato.accounting.rdp:compose", claims=["S4-05"])
def the_first_event_alone_is_composed(original: Any) -> Any:
    def compose(events: Any, **named: Any) -> Any:
        return original(list(events)[:1] if isinstance(events, list | tuple) else events, **named)

    return compose


@broken("sfumato.accounting.rdp:loss_at", claims=["S4-06", "S4-07"])
def losses_at_an_order_are_halved(original: Any) -> Any:
    return lambda event, order: original(event, order) / 2


@broken("sfumato.accounting.pld:epsilon", claims=["S2-16", "S1-02"])
def the_accountant_by_loss_distributions_is_a_fifth_short(original: Any) -> Any:
    return lambda *args, **named: original(*args, **named) * Fraction(4, 5)


@broken("sfumato.accounting.parallel:_largest", claims=["S0-06"])
def disjoint_parts_are_charged_for_all_of_them(_original: Any) -> Any:
    def largest(parts: Any, _count: int) -> Any:
        return sum((part.epsilon for part in parts), Fraction(0)), sum(
            (getattr(part, "delta", Fraction(0)) for part in parts), Fraction(0)
        )

    return largest


# -------------------------------------------------------------------------------------------------------- releases


@broken("sfumato.core.adversary:belief", claims=["S1-30"])
def the_belief_of_an_adversary_is_worked_out_for_half_of_epsilon(original: Any) -> Any:
    def belief(guarantee: Any, prior: Any) -> Any:
        return original(dataclasses.replace(guarantee, epsilon=guarantee.epsilon / 2), prior)

    return belief


@broken("sfumato.reports.publication:Publication.__post_init__", claims=["S1-25", "S1-33"])
def a_publication_needs_no_reason(_original: Any) -> Any:
    return lambda self: None


@broken("sfumato.reports.publication:_stated", claims=["S1-26"], first=["a_pack_without_its_grounds"])
def a_reason_of_no_words_is_enough_to_publish(_original: Any) -> Any:
    return lambda words: True


@broken("sfumato.reports.catalogue:messages", claims=["S1-26"], first=["told_the_limits"])
def the_board_is_not_told_how_far_the_promise_goes(original: Any) -> Any:
    def messages(language: str) -> dict[str, str]:
        known = original(language)
        silent = dict.fromkeys(("limits.unit", "limits.groups"), known["limits.elsewhere"])
        return {**known, **silent}

    return messages


@broken("sfumato.reports.comparison:_epsilon", claims=["S0-34"])
def other_units_are_said_to_cost_the_same(original: Any) -> Any:
    first: list[Any] = []

    def epsilon(mechanism: Any, moved: Any, delta: Any) -> Any:
        first.append(original(mechanism, moved, delta))
        return first[0]

    return epsilon


@broken("sfumato.laws.margins:WholeNumberLaw.margin", claims=["S1-31"])
def margins_are_halved(original: Any) -> Any:
    return lambda self, *args, **named: original(self, *args, **named) // 2


def _facts(words: str) -> set[str | None]:
    return {field for _, field, _, _ in string.Formatter().parse(words)} - {None}


@broken("sfumato.reports.catalogue:messages", claims=["S1-30"])
def texts_for_replace_are_those_for_add_and_remove(original: Any) -> Any:
    def messages(language: str) -> dict[str, str]:
        known = original(language)
        others = {name: known.get(name.replace("replace", "add_remove"), words) for name, words in known.items()}
        return {name: words if _facts(words) <= _facts(known[name]) else known[name] for name, words in others.items()}

    return messages


@broken("sfumato.reports.catalogue:messages", claims=["S2-15"])
def the_photograph_promises_that_nobody_is_found(original: Any) -> Any:
    def messages(language: str) -> dict[str, str]:
        said = " Nobody can find you." if language == "en" else "绝对没有人能找到你。"
        return {
            name: words + said if name.startswith("photograph.") else words
            for name, words in original(language).items()
        }

    return messages


@broken("sfumato.reports.verify:Verification.consistent", claims=["S0-08", "S0-10"])
def every_certificate_is_found_consistent(_original: Any) -> Any:
    return lambda self: True


# ---------------------------------------------------------------------------------------------------------- tables


@broken("sfumato.engines.bounded:kept_rows", claims=["S1-04", "X-07", "S4-20"])
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
    return lambda number, least, low, high: number


@broken("sfumato.inference.consistency:nearest_table", claims=["S1-06"])
def a_table_does_not_keep_its_total(original: Any) -> Any:
    return lambda values, total: original(values, total + 1)


@broken("sfumato.noise.quantile_search:slot", claims=["X-04"])
def the_rank_of_a_quantile_is_off_by_a_tenth(original: Any) -> Any:
    def slot(group: Any, first: int, end: int, share: Fraction, rate: Fraction, words: Any) -> int:
        return original(group, first, end, min(share + Fraction(1, 10), Fraction(1)), rate, words)  # type: ignore[no-any-return]

    return slot


# ---------------------------------------------------------------------------------------------------------- ledger


@broken("sfumato.governance.ledger_state:admit", claims=["S1-23", "S1-19", "S1-24", "X-10"])
def the_ledger_lets_caps_be_passed(_original: Any) -> Any:
    return lambda state, entry: None


@broken("sfumato.governance.balances:Balance.admit", claims=["S4-03"], fast=True)
def the_ledger_in_memory_lets_caps_be_passed(_original: Any) -> Any:
    return lambda self, cost, loss: None


@broken("sfumato.governance.verify:_linked", claims=["S1-21", "S1-03"])
def the_chain_of_hashes_is_not_checked(_original: Any) -> Any:
    return lambda row, entry, number, digest: iter(())


@broken("sfumato.governance.minutes:Minutes.vetoes", claims=["S1-28"])
def a_veto_is_ignored(_original: Any) -> Any:
    return lambda self, dataset: ()


@broken("sfumato.governance.consent:check", claims=["S1-27"])
def consent_is_not_checked(_original: Any) -> Any:
    return lambda use, terms, day: None


@broken("sfumato.governance.permission:permit", claims=["S1-20", "S1-29", "S0-31"])
def the_board_is_not_asked(_original: Any) -> Any:
    return lambda use, terms, minutes, *, at, cost, since=0: None


@broken("sfumato.governance.decision_state:DecisionState._check_ballot", claims=["S1-20"])
def whoever_holds_the_ledger_acts_for_others(_original: Any) -> Any:
    return lambda self, number, entry, minutes: (None, str(number))


@broken("sfumato.governance.policies:BaseAndReserve.locked", claims=["S1-22"])
def the_reserve_is_open_to_everybody(_original: Any) -> Any:
    def locked(self: Any, cap: Any, unlocks: Any) -> Any:
        from sfumato.core.budget import Budget

        return Budget.none()

    return locked


@broken("sfumato.governance.governed:_bears", claims=["S1-11"])
def a_plan_beyond_its_cap_is_adopted(_original: Any) -> Any:
    return lambda balance, schedule: True


@broken("sfumato.governance.provenance:Provenance.missing", claims=["S0-32", "S0-35"])
def provenance_says_that_nothing_is_missing(_original: Any) -> Any:
    return lambda self: ()


# ---------------------------------------------------------------------------------------------------------- graphs


@broken(
    "sfumato.graphs.queries.edges:EdgeCount.exact",
    "sfumato.graphs.queries.histogram:EdgesAndDegrees.exact",
    claims=["S0-13", "S0-08", "S0-21"],
    first=["tests/product"],
)
def edges_are_counted_twice(original: Any) -> Any:
    def exact(self: Any, graph: Any) -> list[int]:
        edges, *others = original(self, graph)
        return [2 * edges, *others]

    return exact


@broken("sfumato.graphs.projection:projected", claims=["S0-08", "S0-21"], first=["tests/product"])
def the_cap_on_degrees_is_not_applied(_original: Any) -> Any:
    return lambda graph, keys, cap: graph


@broken("sfumato.graphs.moves:check_unit", claims=["S0-07"])
def nodes_come_and_go_in_a_public_number_of_nodes(_original: Any) -> Any:
    return lambda unit, shape: None


@broken("sfumato.graphs.queries.edges:EdgeCount.sensitivity", claims=["S0-07", "S0-09", "S4-20"])
def a_node_is_said_to_move_edges_as_one_edge_does(original: Any) -> Any:
    def sensitivity(self: Any, unit: Any, limit: Any) -> Any:
        from sfumato.core.sensitivity import Sensitivity

        original(self, unit, limit)
        return Sensitivity.of(l0=1, l1=1, l2_squared=1, linf=1)

    return sensitivity


@broken("sfumato.core.guarantees:Pure.group", claims=["S0-07"])
def a_node_is_said_to_cost_as_much_as_one_of_its_links(_original: Any) -> Any:
    return lambda self, size: self


@broken("sfumato.graphs.queries.blocks:strategy_for", claims=["S0-20"], first=["tests/product"])
def every_part_of_a_graph_is_answered_with_noise_of_its_own(_original: Any) -> Any:
    return lambda questions, *, gaussian: (tuple(questions), 0)


@broken("sfumato.graphs.local_sensitivity:Front.rungs", claims=["S0-10"])
def the_rungs_of_the_ladder_are_half_as_wide(original: Any) -> Any:
    def rungs(self: Any, nodes: int) -> Any:
        from sfumato.core.ladder_widths import Rungs

        first, *others = original(self, nodes).runs
        return Rungs.of([dataclasses.replace(first, amount=first.amount // 2), *others])

    return rungs


@broken("sfumato.mechanisms.top_set:TopSet.choose", claims=["S0-16"])
def the_top_nodes_are_the_true_ones(_original: Any) -> Any:
    def choose(self: Any, counts: Any, words: Any) -> tuple[int, ...]:
        return tuple(sorted(sorted(range(len(counts)), key=lambda place: -counts[place])[: self.choices]))

    return choose


@broken("sfumato.graphs.queries.degrees:degrees_of", claims=["S0-11", "S0-12"])
def degrees_are_doubled(original: Any) -> Any:
    return lambda graph, direction: 2 * original(graph, direction)


@broken("sfumato.graphs.queries.stars:Stars.sensitivity", claims=["S0-14"])
def stars_are_said_to_move_by_half(original: Any) -> Any:
    return _halved(original)


@broken(
    "sfumato.graphs.ergm.statistics:NetworkStatistics.sensitivity",
    claims=["S0-15"],
    first=["norms_are_those_of_the_formula"],
)
def statistics_of_random_graphs_are_said_to_move_by_half(original: Any) -> Any:
    return _halved(original)


@broken("sfumato.graphs.pagerank:half_moves", claims=["S0-19"])
def bounds_of_pagerank_are_halved(original: Any) -> Any:
    return lambda *args, **named: {name: bound / 2 for name, bound in original(*args, **named).items()}


@broken("sfumato.graphs.block_models:edge_move", claims=["S0-17"])
def the_likelihood_of_blocks_is_said_to_move_by_half(original: Any) -> Any:
    return lambda *args, **named: original(*args, **named) // 2


@broken("sfumato.graphs.queries.weights:PairWeights.exact", claims=["S0-18", "S0-21"], first=["affinities_go"])
def weights_are_not_held_to_their_bound(original: Any) -> Any:
    return lambda self, graph: [2 * weight for weight in original(self, graph)]


@broken("sfumato.graphs.queries.partition_choice:PartitionChoice.exact", claims=["S0-38"], first=["the_winner"])
def the_scores_of_candidates_are_turned_around(original: Any) -> Any:
    return lambda self, graph: [-score for score in original(self, graph)]


@broken("sfumato.graphs.queries.found_communities:communities_of", claims=["S0-38"], first=["planted"])
def communities_are_found_in_pairs_put_in_another_order(original: Any) -> Any:
    return lambda noisy, *more: original(tuple(sorted(noisy)), *more)


# --------------------------------------------------------------------------------------------------------- streams


@broken("sfumato.streams.noise:SeriesNoise.drawn", claims=["X-02", "S4-18", "S4-20"], first=["tests/product"])
def the_noise_of_streams_is_30_percent_too_small(original: Any) -> Any:
    return with_less("noise")(original)


@broken(
    "sfumato.mechanisms.matrix.steps.toeplitz:Toeplitz.squared",
    "sfumato.mechanisms.matrix.steps.tree:Tree.squared",
    "sfumato.mechanisms.matrix.steps.buffers:Buffers.squared",
    "sfumato.mechanisms.matrix.steps.rows:Rows.squared",
    claims=["S4-09", "S4-10"],
)
def the_sensitivity_of_strategies_is_halved(original: Any) -> Any:
    return lambda self, pattern: original(self, pattern) // 4


@broken("sfumato.streams.people:People._room", claims=["S4-08", "S4-09"])
def a_person_counts_in_every_step(_original: Any) -> Any:
    return lambda self, name, step: self._each


@broken("sfumato.streams.people:People._room", claims=["S4-08", "S4-09"])
def steps_of_a_person_are_not_kept_apart(_original: Any) -> Any:
    def room(self: Any, name: str, step: int) -> int:
        count, _ = self._known.get(name, (0, 0))
        if count >= self._times:
            return 0
        self._known[name] = (count + 1, step)
        return int(self._each)

    return room


@broken("sfumato.streams.total:RunningTotal.sensitivity", claims=["S0-22", "S4-08"])
def events_of_a_stream_are_said_to_move_by_half(original: Any) -> Any:
    return _halved(original)


@broken("sfumato.streams.total:RunningTotal.pattern", claims=["S4-19"], first=["tests/product"])
def a_person_has_the_noise_of_one_event(_original: Any) -> Any:
    def pattern(self: Any, unit: Any) -> Any:
        from sfumato.mechanisms.matrix.steps.pattern import Pattern

        return Pattern.of(unit.relation, times=1, separation=1)

    return pattern


@broken("sfumato.audit.trajectories:_group", claims=["S4-19"], first=["rises_with_the_steps"])
def the_epsilon_of_one_step_is_taken_for_that_of_a_person(original: Any) -> Any:
    return lambda epsilon, delta, times: original(epsilon, delta, 1)


@broken("sfumato.streams.noise:_multiplier", claims=["S4-21"], first=["test_feedback"])
def streams_have_the_noise_of_a_twentieth_whatever_is_charged(original: Any) -> Any:
    return lambda epsilon, delta: original(Fraction(1, 20), delta)


@broken("sfumato.streams.people:People._room", claims=["S4-21"], first=["test_feedback"])
def nobody_counts_in_a_stream(_original: Any) -> Any:
    return lambda self, name, step: 0


@broken("sfumato.demo.building:building", claims=["S4-16"], first=["are_correlated"])
def the_steps_of_the_building_know_nothing_of_one_another(original: Any) -> Any:
    def building(**said: Any) -> Any:
        import numpy as np

        found = original(**said)
        quarters = [np.arange(96 * day, min(96 * day + 96, found.steps)) for day in range(-(-found.steps // 96))]
        room, draw = found.room.copy(), np.random.default_rng(3)
        for steps in quarters:
            room[:, steps] = draw.permuted(room[:, steps], axis=1)
        return dataclasses.replace(found, room=room)

    return building


@broken("sfumato.streams.stream:TotalQuestion._warn", claims=["S4-11"])
def nobody_is_warned_of_growing_noise(_original: Any) -> Any:
    return lambda self: None


@broken("sfumato.streams.clock:Steps.put", claims=["S4-08"])
def a_late_event_counts_in_two_steps(original: Any) -> Any:
    def put(self: Any, event: Any) -> None:
        original(self, event)
        step = None if event.at is None else self._clock.step_of(event.at)
        if step is not None and self._floor < step <= self._told:
            original(self, dataclasses.replace(event, at=self._clock.begins(self._told + 2)))

    return put


@broken("sfumato.governance.time_windows:_read", claims=["S4-08"])
def looking_back_is_charged_to_the_last_window_alone(original: Any) -> Any:
    return lambda cadence, charge: original(cadence, charge)[-1:]


@broken("sfumato.governance.time_windows:TimeWindows.stood", claims=["S1-19"])
def a_person_in_several_windows_loses_what_the_worst_one_took(original: Any) -> Any:
    def stood(self: Any, spent: Any, **known: Any) -> Any:
        one = None if self.most_windows is None else dataclasses.replace(self, most_windows=1)
        found = original(one or self, spent, **known)
        return dataclasses.replace(found, most_windows=self.most_windows)

    return stood


@broken("sfumato.local.kary:KaryResponse.report", claims=["S4-13"])
def local_reports_are_the_truth(_original: Any) -> Any:
    return lambda self, truth, bits: truth


@broken("sfumato.local.client:Client._remembered", claims=["S4-12"])
def a_client_draws_a_remembered_report_anew(_original: Any) -> Any:
    return lambda self, truth: self.collection.ask.report(truth, self._bits)


# -------------------------------------------------------------------------------------------------------- learning


@broken(
    "sfumato.learning.lattice:NoisyLattice._drawn",
    claims=["X-02", "S1-12", "S3-02", "S0-23", "S0-29", "S4-20"],
    first=["tests/product", "test_the_gradient_that_the_critic", "stay_under_the_bound"],
)
def the_noise_of_training_is_a_tenth(original: Any) -> Any:
    def drawn(self: Any, size: int, used: Any) -> Any:
        found = original(self, size, used)
        found[:size] //= 10
        return found

    return drawn


@broken("sfumato.learning.sampling:poisson_sample", claims=["X-02", "S1-13"], first=["tests/product"])
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


@broken("sfumato.learning.paradigms.voting:TeacherVotes.sensitivity", claims=["S3-07"])
def teachers_are_said_to_move_by_half(original: Any) -> Any:
    return _halved(original)


@broken("sfumato.learning.paradigms.occurrences:sensitivity", claims=["S3-03", "S3-04", "S3-10"])
def gradients_of_groups_are_said_to_move_by_half(original: Any) -> Any:
    return _halved(original)


@broken("sfumato.learning.paradigms.placed_groups:PlacedGroups.__post_init__", claims=["S3-04"])
def a_sample_may_be_a_negative_of_any_number_of_anchors(_original: Any) -> Any:
    return lambda self: None


@broken("sfumato.learning.paradigms.distillation:CloserModel.sensitivity", claims=["S3-08"])
def the_choice_of_a_student_is_said_to_move_by_half(original: Any) -> Any:
    return _halved(original)


@broken("sfumato.learning.paradigms.student_choice:CloserStudent.sensitivity", claims=["S3-24"])
def the_choice_of_a_student_by_votes_is_said_to_move_by_half(original: Any) -> Any:
    return _halved(original)


@broken("sfumato.learning.paradigms.soft_labels:SoftLabels.sensitivity", claims=["S3-24"])
def soft_labels_are_said_to_move_by_half(original: Any) -> Any:
    return _halved(original)


@broken("sfumato.learning.paradigms.student_choice:CloserStudent.mechanism", claims=["S3-24"])
def the_choice_of_a_student_has_30_percent_less_noise(original: Any) -> Any:
    def mechanism(self: Any, moved: Any, unit: Any, spend: Any) -> Any:
        found = original(self, moved, unit, spend)
        return dataclasses.replace(found, scale=found.scale * LESS)

    return mechanism


@broken("sfumato.learning.paradigms.contrastive_training:ContrastiveTraining.sensitivity", claims=["S3-04"])
def pairs_that_take_a_place_are_said_to_be_added(_original: Any) -> Any:
    def sensitivity(self: Any, unit: Any, limit: Any) -> Any:
        from sfumato.core.sensitivity import Sensitivity
        from sfumato.core.units import Relation

        moved = self.similarities.moved(Relation.ADD_REMOVE)
        return Sensitivity.of(l2_squared=moved**2)

    return sensitivity


@broken("sfumato.learning.paradigms.attention_release:AttentionLogits.sensitivity", claims=["S3-05"])
def attention_logits_are_said_to_move_by_half(original: Any) -> Any:
    return _halved(original)


@broken("sfumato.learning.paradigms.attention_release:AttentionKey.sensitivity", claims=["S3-05"])
def the_key_of_attention_is_said_to_move_by_half(original: Any) -> Any:
    return _halved(original)


@broken("sfumato.learning.generative.equilibrium:discriminator_objective", claims=["S3-06"])
def a_standard_deviation_of_logits_is_taken_for_a_variance(original: Any) -> Any:
    return lambda real, made, *, sd: original(real, made, sd=sd**2)


@broken(
    "sfumato.learning.graph_networks.subgraph_training:SubgraphTraining.sensitivity",
    claims=["S0-24"],
    first=["test_a_clip_for_each_root_alone"],
)
def clip_of_a_rooted_subgraph_is_taken_for_that_of_a_node(_original: Any) -> Any:
    def sensitivity(self: Any, unit: Any, limit: Any) -> Any:
        from sfumato.core.sensitivity import Sensitivity

        return Sensitivity.of(l2_squared=self.clip**2)

    return sensitivity


@broken(
    "sfumato.learning.graph_networks.edge_training:EdgeTraining.sensitivity",
    claims=["S0-24"],
    first=["test_a_link_moves_the_sums_of_a_hop"],
)
def a_link_is_said_to_carry_one_message(_original: Any) -> Any:
    def sensitivity(self: Any, unit: Any, limit: Any) -> Any:
        from sfumato.core.sensitivity import Sensitivity

        return Sensitivity.of(l2_squared=1)

    return sensitivity


@broken(
    "sfumato.learning.graph_networks.sampled_roots:_steps",
    claims=["S0-24"],
    first=["test_a_run_on_sampled_roots_is_charged"],
)
def a_sample_of_roots_is_taken_for_one_of_nodes(original: Any) -> Any:
    return lambda sigma, steps, rate, roots: original(sigma, steps, rate, 1)


@broken(
    "sfumato.learning.graph_networks.recipients:recipients_of",
    claims=["S0-24"],
    first=["test_no_record_of_a_random_graph"],
)
def a_node_sends_to_its_whole_list(original: Any) -> Any:
    return lambda name, listed, places, most, key: original(name, listed, places, 2**20, key)


@broken(
    "sfumato.learning.graph_networks.nodes:sent_by",
    claims=["S0-24"],
    first=["test_the_hub_of_a_star_changes_few_roots"],
)
def a_node_chooses_recipients_among_those_who_exist(original: Any) -> Any:
    def sent_by(names: Any, lists: Any, places: Any, *, most: int, key: bytes) -> Any:
        there = set(names)
        return original(names, lists, {one: at for one, at in places.items() if one in there}, most=most, key=key)

    return sent_by


@broken(
    "sfumato.learning.graph_networks.nodes:kept_rows",
    claims=["S0-24"],
    first=["test_of_five_hundred_rows_of_one_name"],
)
def all_rows_of_a_name_are_roots(_original: Any) -> Any:
    import numpy as np

    return lambda names, most, key: np.arange(len(names))[:, None]


@broken(
    "sfumato.learning.graph_networks.graph_training:GraphTraining.reach_squared",
    claims=["S0-24"],
    first=["test_no_record_moves_the_sums_of_a_hop"],
)
def a_node_is_taken_to_send_one_message(_original: Any) -> Any:
    return lambda self, unit: 1


@broken("sfumato.learning.generative.trainer:GeneratorTrainer._shares", claims=["S0-23"])
def conditions_of_a_generator_are_drawn_by_real_frequencies(original: Any) -> Any:
    def shares(self: Any, asked: Any) -> Any:
        release, _, total = original(self, asked)
        return release, self._units.laid(b"key").inputs[0].mean(0) + 1e-6, total

    return shares


@broken(
    "sfumato.learning.generative.critic_rounds:CriticRounds.course",
    claims=["S0-23"],
    first=["test_no_way_through_tensors", "made_again_from_released_sums"],
)
def a_generator_across_sites_is_shown_rows(original: Any) -> Any:
    from sfumato.learning.laid import Laid

    rows: list[Any] = []
    gathered = Laid.gathered

    def leaking(self: Any, *given: Any) -> Any:
        found = gathered(self, *given)
        rows[:] = [found[0][0]]
        return found

    Laid.gathered = leaking  # type: ignore[assignment, method-assign]  # a way for rows, which the product has not

    def course(self: Any, kept: Any, rounds: int) -> Any:
        made = original(self, kept, rounds)
        made.averaged.last.bias += 1e-3 * rows[0].reshape(-1, sum(self._sizes)).mean(0)
        return made

    return course


@broken("sfumato.learning.paradigms.learning_curves:LearningCurve.sensitivity", claims=["S3-09", "S2-11"])
def learning_curves_are_said_to_move_by_half(original: Any) -> Any:
    return _halved(original)


@broken("sfumato.learning.paradigms.output_perturbation:LogisticWeights.moved", claims=["S2-17"])
def weights_of_a_regression_are_said_to_move_by_half(original: Any) -> Any:
    return lambda self, unit, limit: original(self, unit, limit) / 2


@broken("sfumato.learning.paradigms.attention_logits:LogitRelease.noise", claims=["S3-05"])
def attention_has_30_percent_less_noise(original: Any) -> Any:
    def noise(self: Any) -> Any:
        found = original(self)
        return dataclasses.replace(found, sigma=found.sigma * LESS)

    return noise


@broken("examples.regulariser:_trained", claims=["S3-11"])
def a_study_of_noise_trains_without_it(original: Any) -> Any:
    return lambda data, steps, clip, noise: original(data, steps, clip, None)


@broken("examples.regulariser:_trained", claims=["S3-11"])
def losses_on_new_records_are_those_on_the_training_records(original: Any) -> Any:
    def trained(*args: Any) -> Any:
        train_loss, _, train_accuracy, test_accuracy = original(*args)
        return train_loss, train_loss, train_accuracy, test_accuracy

    return trained


# ------------------------------------------------------------------------------------------------------ the command


# ------------------------------------------------------------------------------------------------- planning, batches


@broken("sfumato.studies.error_sum:ErrorSum.made", claims=["S0-33", "S1-09", "S0-37"], first=["design"])
def a_plan_leaves_the_noise_out(original: Any) -> Any:
    return lambda cls, sampling, noises: original(cls, sampling, ())


@broken("sfumato.studies.frontier:FittedFrontier.best", claims=["S3-13"], first=["frontier"])
def the_best_epsilon_is_that_of_a_mean(original: Any) -> Any:
    return lambda self, n, price: original(dataclasses.replace(self, n_power=2.0), n, price)


@broken("sfumato.studies.batches:drawn", claims=["S0-36", "S1-09"], first=["batches"])
def copies_of_batches_have_less_noise(original: Any) -> Any:
    return lambda noise, shape, random: original(noise, shape, random) / 10


@broken("sfumato.studies.batches:batch_test", claims=["S0-36"], first=["batches"])
def a_shift_of_batches_is_hard_to_see(original: Any) -> Any:
    return lambda sums, random, *, replicates=99: min(1.0, 100 * original(sums, random, replicates=replicates))


@broken("sfumato.studies.replication:expected_agreement", claims=["S0-37"], first=["replication"])
def agreement_counts_findings_alone(original: Any) -> Any:
    from sfumato.studies.power import PowerResult

    def agreement(first: Any, second: Any = None) -> float:
        del second
        return float(first.power if isinstance(first, PowerResult) else first) ** 2

    return agreement


@broken("sfumato.studies.replication:_check_same", claims=["S0-37"], first=["replication"])
def a_fresh_draw_passes_for_a_replication(original: Any) -> Any:
    return lambda first, second: None


# ---------------------------------------------------------------------------------- intervals of a population, survival


@broken("sfumato.inference.normal_laplace:multiplier", claims=["S1-07"], first=["population"])
def a_normal_quantile_stands_for_laplace_noise(original: Any) -> Any:
    return lambda share, level: original(0 * share, level)


@broken("sfumato.inference.population:Residuals.variance", claims=["S1-08"], first=["population"])
def a_proportion_forgets_its_noise(original: Any) -> Any:
    return lambda self, ratio: original(dataclasses.replace(self, noise=0 * self.noise), ratio)


@broken("sfumato.studies.survival_curve:falling", claims=["S1-10"], first=["survival"])
def a_survival_curve_may_rise(original: Any) -> Any:
    return lambda values: values


@broken(
    "sfumato.tables.queries.weighted_marginals:WeightedMarginals.sensitivity",
    claims=["S1-16"],
    first=["weighted_marginal"],
)
def a_person_is_taken_to_be_in_one_table_alone(original: Any) -> Any:
    def sensitivity(self: Any, unit: Any, limit: Any) -> Any:
        one = dataclasses.replace(self, tables=self.tables[:1], weights=self.weights[:1])
        return original(one, unit, limit)

    return sensitivity


@broken("sfumato.synthesis.result:SyntheticTable._words", claims=["S1-17"], first=["synthesize"])
def synthetic_rows_do_not_say_what_they_lack(original: Any) -> Any:
    return lambda self: original(self)[:-1]


@broken("sfumato.synthesis.result:SyntheticTable.explain", claims=["S0-28"], first=["synthesize"])
def synthetic_rows_are_said_to_hold_nobody(original: Any) -> Any:
    return lambda self, language="en": f"{original(self, language)}\nNo real person is inside. 不含真实个人。"


@broken(
    "sfumato.tables.queries.weighted_marginals:WeightedMarginals.sensitivity",
    claims=["S0-27"],
    first=["membership"],
)
def synthetic_rows_forget_the_weights_of_their_tables(original: Any) -> Any:
    def sensitivity(self: Any, unit: Any, limit: Any) -> Any:
        return original(dataclasses.replace(self, weights=(1,) * len(self.weights)), unit, limit)

    return sensitivity


@broken("sfumato.synthesis.comparison:SyntheticComparison.distances", claims=["S0-27"], first=["comparison"])
def a_comparison_with_the_data_has_no_intervals(original: Any) -> Any:
    def distances(self: Any, *given: Any) -> Any:
        return {
            names: tuple(dataclasses.replace(each, low=each.value + 1) for each in both)
            for names, both in original(self, *given).items()
        }

    return distances


@broken("sfumato.federated.masks:keystream", claims=["S0-25"], first=["uniform"])
def a_site_sends_its_numbers_without_masks(original: Any) -> Any:
    return lambda key, size, kind: original(key, size, kind) * kind.type(0)


@broken("sfumato.federated.masks:keystream", claims=["S0-25"], first=["256 bits", "256"])
def masks_are_made_from_32_bits(original: Any) -> Any:
    return lambda key, size, kind: original(key[:4] + bytes(28), size, kind)


@broken("sfumato.federated.server:SumServer._unmask", claims=["S0-25"], first=["leaves"])
def the_masks_of_who_left_stay_in_the_sum(original: Any) -> Any:
    def unmask(self: Any, total: Any, place: int, number: int, *given: Any) -> None:
        if number:
            original(self, total, place, number, *given)

    return unmask


@broken("sfumato.federated.messages:signature_holds", claims=["S0-25"], first=["transcript"])
def messages_between_sites_are_believed_unsigned(original: Any) -> Any:
    return lambda *given: True


@broken("sfumato.federated.shared_noise:SharedNoise.pieces", claims=["S0-26"], first=["honest"])
def shares_of_noise_forget_who_colludes(original: Any) -> Any:
    def pieces(self: Any, parties: Any) -> Any:
        return original(self, dataclasses.replace(parties, colluding=0, threshold=0))

    return pieces


@broken("sfumato.federated.shared_noise:SharedNoise.taken_out", claims=["S0-26"], first=["agreed"])
def pieces_of_noise_stay_in_the_sum(original: Any) -> Any:
    return lambda self, parties, missing: ()


@broken("sfumato.federated.site:sample_skellam", claims=["S0-26"], first=["agreed"])
def sites_add_less_than_their_share_of_noise(original: Any) -> Any:
    return lambda variance, size, words: original(variance * LESS, size, words)


@broken("sfumato.federated.allocation:_weight", claims=["S3-15"], first=["figures"])
def an_allocation_counts_every_client_once(original: Any) -> Any:
    from sfumato.federated.allocation import CountedNoise

    return lambda counted, rounds, size: original(CountedNoise.CLIENT, rounds, size)


@broken("sfumato.federated.training.run_state:RunState.unit_of", claims=["S3-14"], first=["smaller rate"])
def the_mean_of_a_round_is_over_all_people_however_few_were_drawn(original: Any) -> Any:
    def unit_of(self: Any, survivors: int) -> Any:
        return original(self, survivors) * self.proposal.training.rate

    return unit_of


@broken("sfumato.federated.training.shared_rounds:SharedRounds.loss", claims=["S3-14"], first=["smaller rate"])
def a_run_across_sites_is_charged_as_if_everybody_were_in_every_round(original: Any) -> Any:
    def loss(self: Any, moved: Any) -> Any:
        return original(dataclasses.replace(self, rate=type(self.rate)(1)), moved)

    return loss


# ---------------------------------------------------------------------------------------------------- genomics


@broken("sfumato.genomics.public_layer:_at_most", claims=["S3-20"], first=["500"])
def a_patient_counts_with_more_than_was_said(original: Any) -> Any:
    return lambda number, name: original(number + 1, name)


@broken("sfumato.tables.contribution:contribution", claims=["S3-18"], first=["family"])
def a_family_is_protected_as_if_it_were_one_person(original: Any) -> Any:
    def contribution(unit: Any, *args: Any, **named: Any) -> Any:
        return dataclasses.replace(original(unit, *args, **named), members=1)

    return contribution


@broken("sfumato.genomics.uniqueness:_genotypes", claims=["S3-19"], first=["genotypes"])
def both_copies_of_a_gene_are_told_apart(original: Any) -> Any:
    import numpy as np

    def genotypes(gene: Any) -> Any:
        return np.outer(gene, gene).ravel(), np.ones(len(gene) ** 2)

    return genotypes


@broken("sfumato.genomics.variants:_alleles", claims=["S3-23", "S3-25"], first=["vcf"])
def a_missing_genotype_is_taken_for_the_reference(original: Any) -> Any:
    return lambda genotype: original((genotype or "").replace(".", "0"))


@broken("sfumato.genomics.supertypes:SupertypeTable._looked_up", claims=["S3-25"], first=["unknown"])
def unknown_alleles_are_put_into_a_group(original: Any) -> Any:
    def looked_up(self: Any, text: str) -> Any:
        found = original(self, text)
        return self.names[0] if isinstance(found, tuple) else found

    return looked_up


# ------------------------------------------------------------------------------------------------------- audit


@broken("sfumato.demo.attacks.singling_out:odds_exponent", claims=["S1-18"], first=["singling_out"])
def a_belief_is_said_to_move_by_half(original: Any) -> Any:
    return lambda *args, **named: original(*args, **named) / 2


@broken("sfumato.demo.attacks.singling_out:find_rows", claims=["S1-18"], first=["singling_out"])
def a_neighbour_does_not_know_the_region(original: Any) -> Any:
    def find_rows(table: Any, *, region: str, diagnosis: str) -> Any:
        from sfumato.demo.network import DIAGNOSES

        return table.some((table.diagnosis == DIAGNOSES.index(diagnosis)).nonzero()[0])

    return find_rows


@broken("sfumato.demo.attacks.k_anonymity:age_bands", claims=["S3-17"], first=["k_anonymity"])
def classes_have_one_person_less_than_k(original: Any) -> Any:
    return lambda age, *, k: original(age, k=k - 1)


@broken("sfumato.demo.attacks.k_anonymity:by_sex_and_age", claims=["S3-17"], first=["k_anonymity"])
def the_second_table_holds_other_diagnoses(original: Any) -> Any:
    def by_sex_and_age(people: Any, *, k: int = 3) -> Any:
        table = original(people, k=k)
        return dataclasses.replace(table, diagnosis=table.diagnosis[::-1])

    return by_sex_and_age


@broken("sfumato.demo.attacks.ridge:ridge_information", claims=["S3-12"], first=["ridge"])
def a_penalty_takes_the_place_of_noise(original: Any) -> Any:
    def ridge_information(x: Any, *, penalty: Any, noise: Any, covariance: Any = 1.0) -> float:
        return original(x, penalty=penalty, noise=noise or Fraction(1, 10**9), covariance=covariance)

    return ridge_information


@broken("sfumato.demo.attacks.ridge:ridge_information", claims=["S3-12"], first=["ridge"])
def information_forgets_the_penalty(original: Any) -> Any:
    return lambda x, *, penalty, noise, covariance=1.0: original(x, penalty=0, noise=noise, covariance=covariance)


@broken("sfumato.demo.attacks.gradients:private_updates", claims=["S1-15"], first=["gradients"])
def updates_have_the_noise_of_twenty_times_epsilon(original: Any) -> Any:
    return lambda sent, *, epsilon, delta: original(sent, epsilon=20 * epsilon, delta=delta)


@broken("sfumato.federated.site:sample_skellam", claims=["S1-15"], first=["test_federations"])
def rounds_of_a_consortium_have_masks_and_no_noise(_original: Any) -> Any:
    import numpy as np

    return lambda variance, size, words: np.zeros(size, dtype=np.int64)


@broken("sfumato.federated.person_rounding:PersonRounding.whole", claims=["S1-15"], first=["test_federations"])
def rounds_of_a_consortium_take_updates_of_any_length(_original: Any) -> Any:
    import numpy as np

    return lambda self, people: np.rint(people / float(self.unit)).astype(np.int64)


@broken("sfumato.audit.reference_models:_few_false", claims=["S0-29"], first=["need_enough_others"])
def true_positives_at_few_false_ones_are_told_with_any_number_of_others(original: Any) -> Any:
    return lambda members, others, confidence: original(members, others, confidence / 2)


@broken("sfumato.audit.membership:auc_bound", claims=["S0-29"], first=["stay_under_the_bound"])
def the_bound_of_an_area_is_that_of_twice_the_epsilon(original: Any) -> Any:
    return lambda epsilon, delta=0.0: original(2 * epsilon, delta)


@broken("sfumato.audit.membership_page:_rates", claims=["S0-29"], first=["the_page_has_areas"])
def a_page_of_membership_attacks_leaves_the_true_positives_out(original: Any) -> Any:
    return lambda *given: dataclasses.replace(original(*given), rows=())


@broken(
    "sfumato.learning.noisy_sums:NoisySums.pitch",
    claims=["S3-16"],
    first=["simulated_attacks"],
)
def the_noise_of_training_is_a_quarter_of_what_is_stated(original: Any) -> Any:
    return lambda self, moved: original(self, moved) / 4


@broken(
    "sfumato.audit.gradient_attack:gradient_attack_accuracy",
    "sfumato.audit:gradient_attack_accuracy",
    claims=["S3-16"],
    first=["accuracies_are_those"],
)
def the_attack_on_a_gradient_forgets_the_clip(original: Any) -> Any:
    return lambda **facts: original(**{**facts, "epsilon": facts["epsilon"] * max(facts["ratio"], 1)})


@broken("sfumato.federated.export_gate:ExportGate._check_charged", claims=["S1-14"], first=["test_export_gate"])
def numbers_leave_a_site_that_nobody_charged(_original: Any) -> Any:
    return lambda self, found, terms, release: None


@broken("sfumato.federated.hospital:Hospital._against", claims=["S1-14"], first=["veto"])
def a_site_does_not_ask_its_committee(_original: Any) -> Any:
    return lambda self, proposal: None


@broken("sfumato.research.export:verify", claims=["S3-21"], first=["test_rows_do_not_leave"])
def what_leaves_is_not_verified(original: Any) -> Any:
    def verify(document: Any, *, key: Any = None) -> Any:
        return dataclasses.replace(original(document, key=key), authenticated=True)

    return verify


@broken(
    "sfumato.governance.researched:Researched.repeat_run", claims=["S3-21"], first=["test_a_program_from_submission"]
)
def a_run_that_is_answered_from_storage_is_not_logged(_original: Any) -> Any:
    return lambda self, program, first: first.run


@broken("sfumato.vault:Vault.check_columns", claims=["S3-22"], first=["test_minimisation"])
def a_stored_answer_passes_minimisation(_original: Any) -> Any:
    return lambda self, query: None


@broken("sfumato.research.served:check_person_column", claims=["S3-22"], first=["test_minimisation_blocks"])
def whoever_asks_may_name_persons(_original: Any) -> Any:
    return lambda query, unit, approved: None


@broken("sfumato.governance.research_state:ResearchState._check_signed", claims=["S3-22"], first=["test_access_blocks"])
def a_program_runs_whoever_signed_it(_original: Any) -> Any:
    return lambda self, entry, project, approvals: None


@broken("sfumato.governance.balances:Balance.admit", claims=["S3-22"], first=["test_the_guarantee_blocks"])
def an_account_of_a_project_has_no_end(_original: Any) -> Any:
    return lambda self, cost, loss=None: None


# --------------------------------------------------------------------------------------------------------- service


@broken("sfumato.server.views.dashboard:Dashboard.skipped", claims=["S1-34"], first=["test_dashboard"])
def a_dashboard_hides_what_was_skipped(_original: Any) -> Any:
    return lambda self: ()


@broken("sfumato.server.views.dashboard:_Made.counted", claims=["S1-34"], first=["test_dashboard"])
def a_dashboard_forgets_every_second_charge(original: Any) -> Any:
    return lambda self: original(self)[::2]


@broken("sfumato.server.views.dashboard:_Made._why", claims=["S1-34"], first=["test_dashboard"])
def whatever_was_skipped_had_no_data(_original: Any) -> Any:
    from sfumato.server.views.dashboard import WhySkipped

    return lambda self, of, edition, *, vetoed: WhySkipped.NO_DATA


@broken("sfumato.server.views.trend:_margin", claims=["S1-34"], first=["test_dashboard"])
def margins_of_a_dashboard_are_half_as_wide(original: Any) -> Any:
    return lambda form, known, *level: original(form, known, *level) / 2


@broken("sfumato.server.views.trend:_alarm", claims=["S1-34"], first=["test_dashboard"])
def a_dashboard_sounds_no_alarm(_original: Any) -> Any:
    return lambda form, past, known: None


@broken("sfumato.mechanisms.laplace:Laplace.add_noise", claims=["S1-34"], first=["test_dashboard"])
def laplace_noise_is_twice_as_wide_as_it_says(original: Any) -> Any:
    return with_less("scale", Fraction(2))(original)


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
            for verdict in judged(pairs, jobs=asked.jobs, logs=Path(folder), seen=_seen):
                missed += not verdict.caught
                print(_line(verdict), flush=True)
        except Unusable as wrong:
            print(f"the run is of no use: {wrong}")
            return 2
    print(f"{len(pairs) - missed} of {len(pairs)} caught")
    return 1 if missed else 0


def _seen(verdict: Verdict) -> None:
    """Say at once what seems caught, and what it took; the table waits for the run on the original."""
    said = f"{verdict.broken}, {verdict.claim}: seems caught by {verdict.by} ({verdict.seconds:.0f} s)"
    print(said, file=sys.stderr, flush=True)


def _line(verdict: Verdict) -> str:
    by = verdict.by if verdict.caught else f"NOBODY {verdict.note}".rstrip()
    return f"{verdict.broken} | {verdict.claim} | {by} ({verdict.seconds:.0f} s)"


if __name__ == "__main__":
    sys.exit(main())
