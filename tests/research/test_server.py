"""The environment on its socket: the kernel says who connects, and hostile input ends one connection and no more."""

import os
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.core.budget import Budget
from sfumato.core.documents import canonical, encode
from sfumato.errors import EngineFailed, NotDeclared, Refused, SfumatoError
from sfumato.governance.owner.frames import Frames, Peer, overflow_uid, peer_of
from sfumato.governance.owner.socket_server import ServerLimits
from sfumato.research import messages as said
from sfumato.research.connection import Connection
from sfumato.research.server import ResearchServer
from tests.governance.owners import short_folder
from tests.governance.signers import key_of
from tests.research.worlds import CANARY, ROWS, SCHEMA, World, project, world

ASKED = "SELECT COUNT(*) AS n FROM visits"


@pytest.fixture
def made(tmp_path: Path) -> Iterator[World]:
    found = world(tmp_path)
    yield found
    found.ledger.close()


@contextmanager
def serving(
    made: World, credentials: Callable[[socket.socket], Peer] = peer_of, who: str = "rosa"
) -> Iterator[tuple[str, list[str]]]:
    with short_folder() as folder:
        said_: list[str] = []
        limits = ServerLimits(frame=2, idle=5, each_user=8, in_all=8)
        server = ResearchServer(
            made.environment,
            folder / "s",
            users={os.geteuid(): who},
            limits=limits,
            credentials=credentials,
            log=said_.append,
        )
        ready = threading.Event()
        thread = threading.Thread(target=server.serve, args=(ready.set,))
        thread.start()
        assert ready.wait(10)
        try:
            yield f"unix:{server.place}", said_
        finally:
            server.stop()
            thread.join(30)
            assert not thread.is_alive()


@pytest.mark.claim("S3-22")
def test_people_of_a_project_ask_over_the_socket_and_nobody_else(made: World) -> None:
    study = project(reviewed=False)
    made.opened(study)
    other = project("ages", people=("tara",), reviewed=False)
    made.opened(other)
    with serving(made) as (place, _):
        seen = sf.connect(place, project="wards")
        found = seen.sql(ASKED, epsilon=0.1)
        assert found.charged == Budget(epsilon="1/10")
        assert (seen.left, seen.sql(ASKED, epsilon=0.1).repeated) == (Budget(epsilon="9/10"), True)
        messages = set()
        for name in ("ages", "no such project"):  # one that is there, and one that is not
            with pytest.raises(Refused, match="you are not of this project") as refused:
                sf.connect(place, project=name)
            messages.add(str(refused.value))
        assert len(messages) == 1
        made.ledger.veto(by="mele", community="valley", dataset="visits", reason="no", key=key_of("mele"))
        with pytest.raises(SfumatoError):
            seen.sql("SELECT COUNT(*) AS n FROM visits WHERE age > 50", epsilon=0.1)
    assert made.ledger.balance(study.account).spent == Budget(epsilon="1/10")


def test_a_reviewed_project_is_not_asked_here(made: World) -> None:
    made.opened(project())
    with serving(made) as (place, _), pytest.raises(Refused, match="approved one by one"):
        sf.connect(place, project="wards")


@pytest.mark.parametrize("uid", [overflow_uid(), 4242])
def test_users_whom_nobody_named_are_refused(made: World, uid: int) -> None:
    made.opened(project(reviewed=False))
    with (
        serving(made, credentials=lambda _: Peer(uid=uid)) as (place, _),
        pytest.raises(SfumatoError, match=r"is nobody here|connection .* ended"),
    ):
        sf.connect(place, project="wards")


def test_hostile_bytes_end_their_connection_alone(made: World) -> None:
    made.opened(project(reviewed=False))
    hello = canonical(encode(said.JoinRequest(project="wards"))).encode()
    with serving(made) as (place, log):
        for sent in (
            b"\0\0\0\0",
            struct.pack(">I", 2**31),
            struct.pack(">I", 3) + b"{}}",
            struct.pack(">I", 2) + b"\xff\xfe",
            struct.pack(">I", 16) + b'{"kind":"owner"}',
            struct.pack(">I", len(hello)) + hello + struct.pack(">I", 40_000) + b"[" * 40_000,
        ):
            with socket.socket(socket.AF_UNIX) as line:
                line.settimeout(10)
                line.connect(place.removeprefix("unix:"))
                line.sendall(sent)
                frames = Frames(line, said.RESEARCH_MESSAGES, said.AREA)
                reply = frames.read(wait=10, within=10)
                if isinstance(reply, said.ProjectReply):
                    reply = frames.read(wait=10, within=10)
                assert isinstance(reply, said.RefusalReply)
                assert CANARY not in reply.words
        assert sf.connect(place, project="wards").left == Budget(epsilon=1)
        assert CANARY not in "".join(log)


def asked(query: str, **given: object) -> said.QuestionRequest:
    fields = {"spend": Budget(epsilon="1/10"), "limit": None, "fresh": False, "idempotency": None, "reads": None}
    return said.QuestionRequest(question=said.AskedQuestion(query=query, even_if_useless=False, **{**fields, **given}))  # type: ignore[arg-type]


def test_questions_that_are_none_are_refused_before_a_charge(made: World) -> None:
    study = project(reviewed=False)
    made.opened(study)
    served = made.environment.served(study)
    count = sf.Vault(unit=sf.user("patient_id", relation="add/remove"), budget=Budget(epsilon=1), name="theirs")
    query = count.table(ROWS, schema=SCHEMA).count().query
    elsewhere = replace(query, dataset=replace(query.dataset, name="labs"))  # type: ignore[type-var]
    for text in (
        "",
        "{}",
        "[" * 2000,
        " " * 2**21,
        canonical(encode(Budget(epsilon=1))),
        canonical(encode(elsewhere)),
        canonical(encode(query)).replace('"query.count"', '"no such question"', 1),
    ):
        assert isinstance(served.answered(asked(text)), said.RefusalReply)
    reply = served.answered(asked(canonical(encode(query)), spend=Budget(epsilon=2)))
    assert isinstance(reply, said.RefusalReply)
    assert reply.error == "BudgetExceeded"
    assert isinstance(served.answered(said.CostReply(cost=Budget(epsilon=1))), said.RefusalReply)
    assert made.ledger.balance(study.account).spent == Budget.none()


def test_after_the_charge_there_is_one_body_whatever_happened(made: World) -> None:
    """An engine that fails on a row says so to nobody: words, and the class of the error, are always the same."""
    study = project(reviewed=False)
    made.opened(study)
    served = made.environment.served(study)
    seen = Connection(served.answered)
    stopped = EngineFailed(f"row {CANARY} could not be read"), ValueError(CANARY), Refused(CANARY)

    def failing(wrong: Exception) -> Callable[..., None]:
        def release(*_: object, **__: object) -> None:
            raise wrong

        return release

    told = set()
    for wrong in stopped:
        served.vault.release = failing(wrong)  # type: ignore[method-assign,assignment]  # of this vault alone
        with pytest.raises(EngineFailed) as refused:
            seen.sql(ASKED, epsilon=0.1)
        told.add(str(refused.value))
    assert len(told) == 1
    assert CANARY not in told.pop()


def test_without_an_address_nothing_is_connected_outside_a_box() -> None:
    with pytest.raises(NotDeclared, match="is for programs in a box"):
        sf.connect()
    for address, given in (("ledger.db", "wards"), ("unix:/nowhere/s", "wards"), ("unix:/nowhere/s", None)):
        with pytest.raises(SfumatoError):
            sf.connect(address, project=given)
