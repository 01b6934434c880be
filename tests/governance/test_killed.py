"""kill -9 at every step of a charge: what was promised is there, and nothing is half done."""

import secrets
from fractions import Fraction

import pytest

from sfumato.core.budget import Budget
from sfumato.core.ledger import State
from tests.governance.homes import ACCOUNT, PATIENT, VISITS, Home, furnished
from tests.governance.spender import COST, finished, run, started

THIRD = Fraction(1, 3)


@pytest.mark.parametrize("stride", [4, pytest.param(1, marks=pytest.mark.long)])
def test_kill_at_every_step_of_a_charge(home: Home, stride: int) -> None:
    """In `make test` at every fourth step, others each time."""
    furnished(home).close()
    code, words = run(home, "whole", 0)
    assert (code, words[:2]) == (0, ["reserved", "committed"])
    steps, counted, seen = int(words[2]), THIRD, set()
    assert steps >= (44 if home.lite else 30)  # PostgreSQL writes all by one statement
    for step in range(1 + secrets.randbelow(stride), steps + 1, stride):
        request = f"killed at {step}"
        code, words = run(home, request, step)
        assert code == -9
        ledger = home.open()
        if step % 10 < stride or step == steps:
            assert ledger.verify() == ()
        levels = {balance.epsilon_spent for balance in ledger.balances()}
        assert len(levels) == 1  # all levels or none
        moved = levels.pop() - counted
        assert moved in (0, THIRD)
        if "reserved" in words:
            assert moved == THIRD
        # A client that asks again gets the same charge, and the answer if there is one.
        account = ledger.account(ACCOUNT, unit=PATIENT)
        reservation = account.reserve(COST, datasets=[VISITS], idempotency=request)
        counted += THIRD
        assert ledger.balance("hospital").epsilon_spent == counted
        state, answer = ledger.charge(reservation.number).state, account.answer_of(reservation)
        assert (state, answer) in ((State.COMMITTED, f'{{"answer":"{request}"}}'), (State.RESERVED, None))
        assert account.answer(f"question of {request}") == answer
        if "committed" in words:
            assert state is State.COMMITTED
        seen.add((moved, state))
        ledger.close()
    # Not counted; counted and open; counted and answered: all steps together meet all three.
    possible = {(0, State.RESERVED), (THIRD, State.RESERVED), (THIRD, State.COMMITTED)}
    assert seen == possible if stride == 1 else seen <= possible


@pytest.mark.long
@pytest.mark.parametrize("kills", [12, pytest.param(500, marks=pytest.mark.long)])
def test_eight_spenders_at_once_that_are_killed_anywhere(home: Home, kills: int) -> None:
    """Rounds of eight, nine in ten of them killed, at every step in turn, until this many were and a cap is reached."""
    fits = max(8, kills * 9 // 16)  # below the other caps, and reached after most of the kills
    furnished(home, hospital=Budget(epsilon=fits * THIRD)).close()
    _, words = run(home, "whole", 0)
    steps, told, killed, turn = int(words[2]), {"whole": words[:2]}, 0, 0
    waiting: list[int] = []
    met: set[int] = set()
    while killed < kills or not any("refused" in words for words in told.values()):
        turn += 1
        names = [f"{turn}.{number}" for number in range(8)]
        if len(waiting) < 8:  # all steps, and some that no charge reaches, in a new order
            waiting += sorted(range(1, steps * 10 // 9 + 1), key=lambda _: secrets.randbelow(2**32))
        chosen = [waiting.pop() for _ in names]
        spenders = [started(home, name, step) for name, step in zip(names, chosen, strict=True)]
        for name, step, spender in zip(names, chosen, spenders, strict=True):
            code, told[name] = finished(*spender)
            assert code in (0, -9), name
            killed += code == -9
            met |= {step} if code == -9 else set()
        ledger = home.open()
        if turn % 4 == 0:  # no charge was entered above a cap, and the whole state follows from the record
            assert ledger.verify() == ()
        (spent,) = {balance.epsilon_spent for balance in ledger.balances()}
        reserved = sum("reserved" in words for words in told.values())
        assert reserved * THIRD <= spent <= fits * THIRD
        account = ledger.account(ACCOUNT, unit=PATIENT)
        for name in names:
            answer = account.answer(f"question of {name}")
            assert answer in (None, f'{{"answer":"{name}"}}')
            assert "committed" not in told[name] or answer is not None
        ledger.close()
    assert home.open().verify() == ()
    assert kills < 500 or met >= set(range(1, steps + 1))  # those who wait for others take some steps more
    assert spent == fits * THIRD  # somebody was refused, so all was spent
