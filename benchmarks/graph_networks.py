"""Graph networks with privacy for nodes, and for links alone, on Cora and Citeseer, beside models that ignore links.

Four fifths of the nodes have labels to learn from, drawn anew for each of three runs; accuracy is that of the others. A
citation stands in the lists of both papers. δ = 1e-4. More than 1,000 words are mapped to 512 numbers by random signs
that everybody knows, for the sake of time. Settings were chosen beforehand on these same public data and are
the same for both; none was chosen by the accuracies that are written here. Networks without privacy stand beside.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import write

DATA = Path(__file__).parents[2] / "shared" / "data"
NETWORKS = ("cora", "citeseer")
EPSILONS, RUNS, STEPS, DELTA = (1, 3, 8), 3, 40, Fraction(1, 10**4)
MOST_WORDS, WIDTH = 1000, 512
RATES = {1: 2.0, 3: 6.0, 8: 10.0}
SHARES = {1: Fraction(1, 10), 3: Fraction(1, 10), 8: Fraction(1, 2)}
PART = 4
Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Papers:
    """Papers as nodes: features of length 1, subjects, and the lists of both sides of each citation."""

    features: Array
    labels: Array
    edges: Array

    @property
    def lists(self) -> list[list[int]]:
        """The papers that each cites or is cited by."""
        found: list[list[int]] = [[] for _ in self.labels]
        for one, other in self.edges.tolist():
            found[one].append(other)
            found[other].append(one)
        return found

    @property
    def classes(self) -> int:
        """How many subjects there are."""
        return int(self.labels.max()) + 1


def run(*, smoke: bool) -> Path:
    """Measure both networks and write the result; a smoke run invents a small one."""
    if smoke:
        measured: dict[str, object] = {"invented": measure(_invented(), runs=1, steps=2, epsilons=(8,), epochs=2)}
        return write("graph_networks", measured, smoke=True)
    measured = {}
    for name in NETWORKS:
        found = read(DATA / "planetoid-cora-citeseer" / f"{name}.npz")
        measured[name] = measure(found, runs=RUNS, steps=STEPS, epsilons=EPSILONS, epochs=30)
        written = write("graph_networks", measured, smoke=False)
    return written


def measure(papers: Papers, *, runs: int, steps: int, epsilons: tuple[int, ...], epochs: int) -> dict[str, object]:
    """The accuracy on nodes without a label, of each way and at each ε."""
    splits = [_split(papers, seed) for seed in range(runs)]
    private: dict[str, Callable[[Papers, Array, int, int], Array]] = {
        "features alone": _features_alone,
        "passing predictions on": _propagated,
        "rooted subgraphs": _subgraphs,
        "rooted subgraphs, sampled": _sampled,
        "links alone": _links,
    }
    found: dict[str, object] = {"pairs": runs, "peers": {}, "nodes": len(papers.labels), "edges": len(papers.edges)}
    for name, way in private.items():
        found[name] = {
            f"epsilon {epsilon}": _told([right(way(papers, known, epsilon, steps), papers, known) for known in splits])
            for epsilon in epsilons
        }
    for name in ("features alone", "graph convolution", "mean of neighbours"):
        found[f"{name}, without privacy"] = _told(
            [right(_open(papers, known, name, seed, epochs), papers, known) for seed, known in enumerate(splits)]
        )
    return found


def right(said: Array, papers: Papers, known: Array) -> float:
    """The share of nodes that were not learned from and whose subject was said."""
    asked = ~known & (papers.labels >= 0)
    return float((said == papers.labels)[asked].mean())


def _vault(papers: Papers, unit: str = "record") -> Any:
    import sfumato as sf

    budget = sf.Budget(epsilon=10, delta=DELTA)
    made = {"record": sf.record, "user": partial(sf.user, "paper"), "edge": sf.edge}[unit](relation="add/remove")
    return sf.Vault(unit=made, budget=budget, name="papers", population=len(papers.labels))


def _nodes(papers: Papers, known: Array) -> Any:
    from sfumato.learning import GraphNodes

    return GraphNodes(
        papers.features,
        np.where(known, papers.labels, -1),
        names=list(range(len(papers.labels))),
        lists=papers.lists,
        roster=range(len(papers.labels)),
        classes=papers.classes,
        n_units=int(known.sum()),
        name="papers",
        version="1",
    )


def _propagated(papers: Papers, known: Array, epsilon: int, steps: int) -> Array:
    trainer = _vault(papers).graph_network(data=_nodes(papers, known), share=SHARES[epsilon])
    found = trainer.fit(epsilon=epsilon, delta=DELTA, steps=steps, lr=RATES[epsilon], progress=False)
    return np.asarray(found.classes(papers.features, range(len(papers.labels))))


def _subgraphs(papers: Papers, known: Array, epsilon: int, steps: int, part: int = 1) -> Array:
    """Rooted subgraphs, of which each step takes all, or one of ``part`` in as many more steps."""
    data, number = _nodes(papers, known), int(known.sum())
    trainer = _vault(papers, "user").graph_network(data=data, recipients=2, method="subgraphs")
    run: dict[str, Any] = {"epsilon": epsilon, "delta": DELTA, "steps": steps * part, "batch": number // part}
    rate = RATES[epsilon] / trainer.plan(**run).query.reach / part
    found = trainer.fit(**run, lr=rate, progress=False)
    return np.asarray(found.classes(papers.features, range(len(papers.labels)), papers.lists))


def _sampled(papers: Papers, known: Array, epsilon: int, steps: int) -> Array:
    return _subgraphs(papers, known, epsilon, steps, PART)


def _links(papers: Papers, known: Array, epsilon: int, steps: int) -> Array:
    """Where a link is protected and nothing else: features and labels are learned from without noise."""
    found = _vault(papers, "edge").graph_network(data=_nodes(papers, known)).fit(epsilon=epsilon, delta=DELTA)
    return np.asarray(found.classes(papers.features, range(len(papers.labels))))


def _features_alone(papers: Papers, known: Array, epsilon: int, steps: int) -> Array:
    import torch

    from sfumato.learning import Units

    layer = torch.nn.Linear(papers.features.shape[1], papers.classes)
    torch.nn.init.zeros_(layer.weight)
    torch.nn.init.zeros_(layer.bias)
    rows, number = torch.from_numpy(papers.features), int(known.sum())
    data = Units(rows[known], torch.from_numpy(papers.labels[known]), n_units=number, name="papers", version="1")
    trainer = _vault(papers).trainer(layer, torch.nn.functional.cross_entropy, data=data)
    trainer.fit(epsilon=epsilon, delta=DELTA, steps=steps, batch=number, lr=RATES[epsilon], progress=False)
    return np.asarray(layer(rows).argmax(1).numpy())


def _open(papers: Papers, known: Array, name: str, seed: int, epochs: int) -> Array:
    """A network of two layers without privacy; what it mixes in from neighbours is what its name says."""
    import torch

    torch.manual_seed(seed)
    rows, labels = torch.from_numpy(papers.features), torch.from_numpy(papers.labels)
    mixed = _mixed(papers, name)
    width = 2 if name == "mean of neighbours" else 1
    first, last = torch.nn.Linear(width * rows.shape[1], 32), torch.nn.Linear(width * 32, papers.classes)

    def scores(*, learning: bool) -> torch.Tensor:
        drop = torch.nn.functional.dropout
        hidden = torch.relu(first(mixed(drop(rows, 0.5, training=learning))))
        return last(mixed(drop(hidden, 0.5, training=learning)))  # type: ignore[no-any-return]  # a module of torch

    weights = [*first.parameters(), *last.parameters()]
    optimizer = torch.optim.Adam(weights, lr=0.05, weight_decay=5e-4)
    for _ in range(epochs):
        optimizer.zero_grad()
        torch.autograd.backward(torch.nn.functional.cross_entropy(scores(learning=True)[known], labels[known]))
        optimizer.step()
    return np.asarray(scores(learning=False).argmax(1).numpy())


def _mixed(papers: Papers, name: str) -> Any:
    import torch

    if name == "features alone":
        return lambda rows: rows
    size = len(papers.labels)
    both = np.concatenate([papers.edges, papers.edges[:, ::-1]])
    degrees = np.bincount(both[:, 0], minlength=size).astype(np.float32)
    if name == "graph convolution":
        both = np.concatenate([both, np.stack([np.arange(size)] * 2, axis=1)])
        values = 1 / np.sqrt((degrees + 1)[both[:, 0]] * (degrees + 1)[both[:, 1]])
    else:
        values = 1 / degrees[both[:, 0]]
    matrix = torch.sparse_coo_tensor(torch.from_numpy(both.T.copy()), torch.from_numpy(values), (size, size)).coalesce()
    if name == "graph convolution":
        return lambda rows: torch.sparse.mm(matrix, rows)
    return lambda rows: torch.cat([rows, torch.sparse.mm(matrix, rows)], dim=1)


def read(path: Path) -> Papers:
    """A network of papers, each row of features scaled to length 1; many words are mapped to fewer numbers first."""
    from scipy.sparse import csr_matrix

    with np.load(path) as held:
        parts = (held["x_data"], held["x_indices"], held["x_indptr"])
        rows = csr_matrix(parts, shape=tuple(held["x_shape"])).toarray()
        labels, edges = held["y"].astype(np.int64), held["edges"].astype(np.int64)
    if rows.shape[1] > MOST_WORDS:
        rows = rows @ np.random.default_rng(0).choice([-1.0, 1.0], size=(rows.shape[1], WIDTH))
    length = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    return Papers((rows / length).astype(np.float32), labels, edges)


def _invented() -> Papers:
    made = np.random.default_rng(1)
    labels = made.integers(0, 2, 60)
    features = (made.normal(size=(60, 8)) + 2 * labels[:, None]).astype(np.float32)
    return Papers(features, labels, made.integers(0, 60, (90, 2)))


def _split(papers: Papers, seed: int) -> Array:
    """Which nodes are learned from: four fifths, of those that have a label."""
    order = np.random.default_rng(seed).permutation(len(papers.labels))
    known = np.zeros(len(order), dtype=bool)
    known[order[: 4 * len(order) // 5]] = True
    return known & (papers.labels >= 0)


def _told(found: list[float]) -> dict[str, float]:
    return {"mean": round(float(np.mean(found)), 4), "least": round(min(found), 4), "most": round(max(found), 4)}
