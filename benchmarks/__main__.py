"""Run all benchmarks, or those named: ``python -m benchmarks [--smoke] [NAME …]``."""

import argparse
import importlib

from benchmarks.harness import check_schema

NAMES = (
    "accounting",
    "accuracy",
    "blocks",
    "counts",
    "federated",
    "fit",
    "graph_networks",
    "graphs",
    "inference",
    "ledger",
    "local",
    "matrix",
    "node_level",
    "noise",
    "service",
    "streams",
    "synthesis",
    "synthesis_deep",
    "tables",
    "training",
    "training_device",
)


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m benchmarks")
    options.add_argument("names", nargs="*", metavar="NAME", help=f"one or more of {', '.join(NAMES)}")
    options.add_argument("--smoke", action="store_true", help="small sizes; checks the schema and keeps no result")
    chosen = options.parse_args()
    for name in chosen.names or NAMES:
        if name not in NAMES:
            options.error(f"there is no benchmark {name!r}")
        module = importlib.import_module(f"benchmarks.{name}")
        if not chosen.names and not chosen.smoke and not getattr(module, "possible", lambda: True)():
            print(f"{name}: left out, for want of a device")
            continue
        path = module.run(smoke=chosen.smoke)
        check_schema(path)
        print(f"{name}: {path}")


if __name__ == "__main__":
    main()
