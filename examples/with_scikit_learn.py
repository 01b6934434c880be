"""A private classifier in scikit-learn: ``clone``, a ``Pipeline``, ``predict_proba`` and ``coef_``.

A step of a pipeline that learns from rows (a scaler's mean) is covered by no charge; one that is fixed beforehand
(a polynomial) is fine, and bounds of columns do what a scaler is for. Run it with
``python -m examples.with_scikit_learn``; without scikit-learn it says so and does nothing. Rows are invented.
"""

import importlib

import numpy as np

import sfumato as sf
from sfumato.learning import DPClassifier

__all__ = ["classifier", "main"]


def classifier(vault: sf.Vault) -> DPClassifier:
    """A classifier of two columns with declared bounds."""
    return DPClassifier(
        vault=vault,
        epsilon=2,
        delta=1e-7,
        bounds=(-3, 3),
        classes=["home", "ward"],
        n_units=2000,
        epochs=5,
        name="visits",
        version="2026-10",
    )


def main() -> None:
    """Train, or say why not."""
    try:
        base = importlib.import_module("sklearn.base")
        pipelines = importlib.import_module("sklearn.pipeline")
        processing = importlib.import_module("sklearn.preprocessing")
    except ImportError:
        print("skipped: scikit-learn is not installed (pip install scikit-learn)")  # noqa: T201 - a script that is run by hand
        return
    rows = np.random.default_rng(7).normal(size=(2000, 2))
    again = np.where(rows[:, 0] > 0, "ward", "home")
    vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=5, delta=1e-6), name="ward")
    twin = base.clone(classifier(vault))  # with the same vault: a copy would spend the same budget twice
    clipped = processing.FunctionTransformer(np.clip, kw_args={"a_min": -3, "a_max": 3})  # fixed beforehand
    pipeline = pipelines.make_pipeline(clipped, twin).fit(rows, again)
    print(f"chances {np.round(pipeline.predict_proba([[2.0, 0.0]])[0], 2).tolist()}, coefficients {twin.coef_.shape}")  # noqa: T201 - a script that is run by hand
    print(f"ε left {vault.left.epsilon}; a grid search would charge each of its fits")  # noqa: T201 - a script that is run by hand


if __name__ == "__main__":
    main()
