"""kill -9 at every step of a charge: what was promised is there, and nothing is half done."""

from fractions import Fraction

from sfumato.governance.memory import State
from tests.governance.homes import ACCOUNT, PATIENT, VISITS, Home, furnished
from tests.governance.spender import COST, run

THIRD = Fraction(1, 3)


def test_kill_at_every_step_of_a_charge(home: Home) -> None:
    furnished(home).close()
    code, words = run(home, "whole", 0)
    assert (code, words[:2]) == (0, ["reserved", "committed"])
    steps, counted, seen = int(words[2]), THIRD, set()
    assert steps > 40
    for step in range(1, steps + 1):
        request = f"killed at {step}"
        code, words = run(home, request, step)
        assert code == -9
        ledger = home.open()
        if step % 10 == 0 or step == steps:
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
    # Not counted; counted and open; counted and answered: the steps met all three.
    assert seen == {(0, State.RESERVED), (THIRD, State.RESERVED), (THIRD, State.COMMITTED)}
