"""Flower's SecAgg+ in an environment of its own, which is built on first use: one whole round in one process.

Its own workflow and its own client code, with a grid that hands messages over in memory: no network, no serialisation
of messages and no scheduler are in the clock. What its round has is not what ours has: it adds no noise and signs
nothing, the server is believed, and masks come from NumPy's generator, whose seed has 32 bits.
"""

import json
import subprocess

from benchmarks.table_peers import Peer, built

__all__ = ["FLOWER", "flower_rounds"]

ROUND = """
import copy, json, logging, sys, time, warnings
warnings.filterwarnings("ignore")
from types import SimpleNamespace
import numpy as np
import flwr.compat.common.recorddict_compat as compat
from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.client.mod import secaggplus_mod
from flwr.common import Code, FitIns, FitRes, Status, ndarrays_to_parameters, parameters_to_ndarrays
from flwr.server.compat.legacy_context import LegacyContext
from flwr.server.strategy import FedAvg
from flwr.server.workflow import SecAggPlusWorkflow
from flwr.server.workflow.constant import MAIN_CONFIGS_RECORD, MAIN_PARAMS_RECORD, Key
from flwr.supercore.task_identity import TaskIdentity
TaskIdentity.task_id, TaskIdentity.run_id, TaskIdentity.node_id = 1, 1, 1 << 20
logging.getLogger("flwr").setLevel(logging.ERROR)
sites, length, threshold, times = (int(one) for one in sys.argv[1:5])
values = {n: np.full(length, n / 100, dtype=np.float32) for n in range(1, sites + 1)}

def context(node):
    return Context(run_id=1, node_id=node, node_config={}, state=RecordDict(), run_config={}, series_id=0)

class Memory:
    def __init__(self):
        self.contexts = {n: context(n) for n in values}

    def send_and_receive(self, messages, *, timeout=None):
        answers = []
        for message in messages:
            node = message.metadata.dst_node_id
            copied = Message(copy.deepcopy(message.content), dst_node_id=node, message_type="train")
            answers.append(secaggplus_mod(copied, self.contexts[node], lambda msg, ctxt: fitted(msg, node)))
        return answers

def fitted(message, node):
    done = FitRes(Status(Code.OK, ""), ndarrays_to_parameters([values[node]]), 1, {})
    return Message(compat.fitres_to_recorddict(done, False), reply_to=message)

class All(FedAvg):
    def configure_fit(self, server_round, parameters, client_manager):
        return [(SimpleNamespace(node_id=n), FitIns(parameters, {})) for n in values]

    def aggregate_fit(self, server_round, results, failures):
        assert len(results) == sites and not failures
        return results[0][1].parameters, {}

def whole_round():
    given = LegacyContext(context(0), strategy=All(), client_manager=SimpleNamespace(num_available=lambda: sites))
    given.state.config_records[MAIN_CONFIGS_RECORD] = ConfigRecord({Key.CURRENT_ROUND: 1})
    begin = ndarrays_to_parameters([np.zeros(length, dtype=np.float32)])
    given.state.array_records[MAIN_PARAMS_RECORD] = compat.parameters_to_arrayrecord(begin, True)
    SecAggPlusWorkflow(num_shares=sites, reconstruction_threshold=threshold, clipping_range=1.0)(Memory(), given)
    found = compat.arrayrecord_to_parameters(given.state.array_records[MAIN_PARAMS_RECORD], True)
    return parameters_to_ndarrays(found)[0]

mean = np.mean(list(values.values()), axis=0)
assert np.abs(whole_round() - mean).max() < 1e-3, "the round did not give the mean"
spent = []
for _ in range(times):
    start = time.process_time()
    whole_round()
    spent.append(time.process_time() - start)
print(json.dumps(spent))
"""

FLOWER = Peer(package="flwr==1.41.0", program=ROUND)


def flower_rounds(*, sites: int, length: int, threshold: int, times: int) -> list[float] | str:
    """CPU seconds of some rounds, each in the same process and after one that is not counted; or why there are none."""
    python = built(FLOWER)
    if isinstance(python, str):
        return python
    asked = [str(one) for one in (sites, length, threshold, times)]
    found = subprocess.run([python, "-c", ROUND, *asked], capture_output=True, text=True, check=False)
    if found.returncode != 0:
        return f"not measured: {found.stderr.strip().splitlines()[-1]}"
    spent: list[float] = json.loads(found.stdout.strip().splitlines()[-1])
    return spent
