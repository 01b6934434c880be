"""The board: who may vote, when a vote decides, what a veto stops, and what is outside consent or purpose."""

from dataclasses import replace
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core.budget import Budget
from sfumato.core.documents import Registry, canonical, encode, parse
from sfumato.errors import InvalidInput, LedgerError, NotDeclared, Refused, SfumatoError
from sfumato.governance import board as declared
from sfumato.governance import consent
from sfumato.governance.board import (
    Action,
    Board,
    BoardEntry,
    Choice,
    Committee,
    Community,
    Outcome,
    Proposal,
    Reasons,
    Veto,
    VetoLifted,
    Vote,
    Withdrawal,
)
from sfumato.governance.consent import Ground, HipaaBasis, SpecialCategory, Terms, Use
from sfumato.governance.minutes import Minutes
from sfumato.governance.permission import permit
from sfumato.governance.policies import BaseAndReserve

BOARD = Board(
    members=("ada", "ben", "cho", "dov"),
    quorum=2,
    committees=(Committee(site="north", members=("hana", "ivo", "jun", "ben"), representatives=("jun",), quorum=2),),
    communities=(
        Community(name="valley", representatives=("mele", "dov"), datasets=("visits",)),
        Community(name="coast", representatives=("noa",), datasets=("visits", "births")),
    ),
)
WHY = Reasons(benefit="beds are planned by it", risk="a rare case could be guessed", choice="±6 is enough for that")


def on(day: int, hour: int = 9) -> str:
    return f"2026-01-{day:02}T{hour:02}:00:00+00:00"


def ask(number: int = 1, **fields: object) -> Proposal:
    whole = {
        "number": number, "at": on(1), "expires": on(15), "proposer": "ada", "action": Action.DATASET, "account": None,
        "datasets": ("births",), "sites": (), "amount": None, "subject": "births of 2026", "reasons": WHY, **fields,
    }  # fmt: skip
    return Proposal(**whole)  # type: ignore[arg-type]


def vote(voter: str, choice: Choice = Choice.YES, *, proposal: int = 1, at: str | None = None) -> Vote:
    return Vote(proposal=proposal, at=at or on(2), voter=voter, choice=choice, reason="as discussed")


def outcome(*entries: BoardEntry, number: int = 1) -> Outcome | None:
    decision = Minutes.replay(BOARD, entries).decision(number)
    return None if decision is None else decision.outcome


@pytest.mark.claim("S1-20")
def test_a_quorum_of_others_approves_and_the_decision_stands_in_the_minutes() -> None:
    minutes = Minutes.replay(BOARD, [ask(), vote("ben")])
    assert minutes.decision(1) is None
    minutes = minutes.after(vote("cho"))
    decision = minutes.decision(1)
    assert decision is not None
    assert (decision.outcome, decision.yes, decision.no, decision.at) == (Outcome.APPROVED, ("ben", "cho"), (), on(2))
    assert minutes.decisions == (decision,)


@pytest.mark.claim("S1-20")
@pytest.mark.parametrize("voter", ["ada", "eve", "hana", "mele"])
def test_the_proposer_and_strangers_do_not_vote(voter: str) -> None:
    minutes = Minutes.replay(BOARD, [ask(), vote("ben")])
    with pytest.raises(Refused, match="The vote was not counted"):
        minutes.after(vote(voter))
    assert minutes.votes(1) == (vote("ben"),)


def test_nobody_votes_twice_even_to_change_their_mind() -> None:
    with pytest.raises(Refused, match="cast once and stands"):
        outcome(ask(), vote("ben"), vote("ben"))
    with pytest.raises(Refused, match="cast once and stands"):
        outcome(ask(), vote("ben", Choice.NO), vote("ben"))


@pytest.mark.parametrize("late", [Choice.YES, Choice.NO])
def test_nothing_is_voted_on_after_it_is_decided(late: Choice) -> None:
    with pytest.raises(Refused, match="proposal 1 was approved on 2026-01-02"):
        outcome(ask(), vote("ben"), vote("cho"), vote("dov", late))


def test_as_many_no_as_yes_wait_and_a_lost_cause_is_rejected() -> None:
    assert outcome(ask(), vote("ben"), vote("cho", Choice.NO)) is None
    assert outcome(ask(), vote("ben"), vote("cho", Choice.NO), vote("dov")) is Outcome.APPROVED
    assert outcome(ask(), vote("ben", Choice.NO), vote("cho", Choice.NO)) is Outcome.REJECTED
    assert outcome(ask(), vote("ben", Choice.ABSTAIN), vote("cho", Choice.ABSTAIN)) is Outcome.REJECTED


def test_a_quorum_does_not_outvote_as_many_others() -> None:
    large = Board(members=("ada", "ben", "cho", "dov", "eve", "fay"), quorum=2)
    votes = [vote("ben", Choice.NO), vote("cho", Choice.NO), vote("dov"), vote("eve")]
    minutes = Minutes.replay(large, [ask(), *votes])
    assert minutes.decision(1) is None
    assert minutes.after(vote("fay")).decision(1).outcome is Outcome.APPROVED  # type: ignore[union-attr]
    assert minutes.after(vote("fay", Choice.NO)).decision(1).outcome is Outcome.REJECTED  # type: ignore[union-attr]


def test_a_proposal_expires_and_is_not_voted_on_any_more() -> None:
    last = replace(vote("cho"), at="2026-01-15T08:59:59+00:00")
    assert outcome(ask(), vote("ben"), last) is Outcome.APPROVED
    with pytest.raises(Refused, match="was expired on 2026-01-15"):
        outcome(ask(), vote("ben"), vote("cho", at=on(15)))
    minutes = Minutes.replay(BOARD, [ask(), vote("ben")])
    assert minutes.decision(1) is None
    assert minutes.at("2026-01-15T11:00:00+02:00").decision(1).outcome is Outcome.EXPIRED  # type: ignore[union-attr]
    assert minutes.at("2026-01-15T10:00:00+02:00").decision(1) is None


def test_only_the_proposer_withdraws_and_only_once() -> None:
    taken = Withdrawal(proposal=1, at=on(3), by="ada")
    assert outcome(ask(), vote("ben"), taken) is Outcome.WITHDRAWN
    with pytest.raises(Refused, match="only 'ada' can withdraw"):
        outcome(ask(), replace(taken, by="ben"))
    with pytest.raises(Refused, match="was withdrawn"):
        outcome(ask(), taken, taken)


def test_a_clock_set_back_enters_nothing() -> None:
    with pytest.raises(LedgerError, match="Set the clock right"):
        outcome(ask(at=on(5)), vote("ben", at=on(4)))


def test_proposals_are_numbered_without_gap_and_must_be_decidable() -> None:
    with pytest.raises(Refused, match="has the number 1"):
        outcome(ask(2))
    small = Board(members=("ada", "ben"), quorum=2)
    with pytest.raises(Refused, match="could never approve this"):
        Minutes(board=small).after(ask())
    with pytest.raises(Refused, match="committee of north could never"):
        Minutes(board=BOARD).after(ask(proposer="jun", sites=("north",)))
    with pytest.raises(NotDeclared, match="no data access committee"):
        Minutes(board=BOARD).after(ask(sites=("south",)))


@pytest.mark.parametrize("quorum", [0, 1, 5, True])
def test_a_quorum_below_two_or_above_the_members_is_refused(quorum: int) -> None:
    with pytest.raises(InvalidInput):
        Board(members=("ada", "ben", "cho", "dov"), quorum=quorum)


@pytest.mark.claim("S1-28")
def test_a_representatives_no_ends_a_request_whatever_the_quorum() -> None:
    about = ask(datasets=("visits",))
    assert outcome(about, vote("ben"), vote("mele", Choice.NO)) is Outcome.VETOED
    assert outcome(about, vote("ben"), vote("noa")) is None  # a representative's yes is no seat on the board
    assert outcome(about, vote("ben"), vote("cho")) is Outcome.APPROVED
    # The twin: the same no about a dataset of another community is an ordinary one.
    assert outcome(ask(), vote("dov", Choice.NO)) is None
    assert outcome(about, vote("dov", Choice.NO)) is Outcome.VETOED


@pytest.mark.claim("S1-28")
def test_a_veto_ends_open_requests_blocks_new_ones_and_is_lifted_by_the_same_community() -> None:
    veto = Veto(at=on(3), community="valley", voter="mele", dataset="visits", reason="not asked")
    lifted = VetoLifted(at=on(4), community="valley", voter="dov", dataset="visits", reason="asked now")
    minutes = Minutes.replay(BOARD, [ask(datasets=("visits",)), vote("ben"), ask(2, at=on(2)), veto])
    assert minutes.decision(1).outcome is Outcome.VETOED  # type: ignore[union-attr]
    assert minutes.decision(2) is None
    assert minutes.vetoes("visits") == (veto,)
    with pytest.raises(Refused, match=r"valley since 2026-01-03.*not asked"):
        minutes.after(ask(3, at=on(4), datasets=("visits",)))
    with pytest.raises(Refused, match="stands already"):
        minutes.after(veto)
    with pytest.raises(Refused, match="does not stand"):
        minutes.after(replace(lifted, community="coast", voter="noa"))
    minutes = minutes.after(lifted)
    assert minutes.vetoes("visits") == ()
    assert minutes.after(ask(3, at=on(4), datasets=("visits",))).open[-1].number == 3


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"voter": "ben"}, "does not speak for"),
        ({"dataset": "births"}, "holds no veto over"),
        ({"community": "plain"}, "no community is named"),
    ],
)
def test_a_veto_is_for_those_who_hold_it(fields: dict[str, str], words: str) -> None:
    veto = Veto(at=on(3), community="valley", voter="mele", dataset="visits", reason="not asked")
    with pytest.raises(SfumatoError, match=words):
        Minutes(board=BOARD).after(replace(veto, **fields))


@pytest.mark.claim("S1-29")
def test_a_site_approves_by_its_committee_with_a_representative() -> None:
    local = ask(sites=("north",))
    assert outcome(local, vote("ben"), vote("cho")) is None
    assert outcome(local, vote("ben"), vote("cho"), vote("hana")) is None  # ben and hana are two, but none speaks
    assert outcome(local, vote("ben"), vote("cho"), vote("jun")) is Outcome.APPROVED
    assert outcome(local, vote("ben"), vote("cho"), vote("jun", Choice.NO)) is Outcome.REJECTED
    assert outcome(local, vote("hana"), vote("jun")) is None  # and the board has to approve too


@pytest.mark.claim("S0-31")
@pytest.mark.parametrize("field", ["benefit", "risk", "choice"])
@pytest.mark.parametrize("text", ["", "  \n"])
def test_reasons_for_epsilon_are_never_empty(field: str, text: str) -> None:
    with pytest.raises(NotDeclared, match=field):
        replace(WHY, **{field: text})


@pytest.mark.claim("S1-22")
def test_the_reserve_opens_by_decision_only_and_never_beyond_what_it_holds() -> None:
    rule = BaseAndReserve(base=(("oncology", "3/4"),))  # type: ignore[arg-type]
    cap = Budget(epsilon=8)
    asked = [
        ask(number, action=Action.UNLOCK, account="oncology", datasets=(), amount=Budget(epsilon=1.5))
        for number in (1, 2)
    ]
    minutes = Minutes.replay(BOARD, [*asked, vote("ben")], reserves=(("", rule.reserved(cap)),))
    assert rule.allowed("oncology", cap, minutes.unlocks()) == Budget(epsilon=6)
    minutes = minutes.after(vote("cho"))
    assert rule.allowed("oncology", cap, minutes.unlocks()) == Budget(epsilon=7.5)
    minutes = minutes.after(vote("ben", proposal=2)).after(vote("cho", proposal=2))
    second = minutes.decision(2)
    assert second is not None
    assert (second.outcome, second.why) == (Outcome.REJECTED, "the reserve has ε = 1/2 left")
    with pytest.raises(Refused, match="the reserve has ε = 1/2 left"):
        minutes.after(replace(asked[0], number=3, at=on(2)))
    with pytest.raises(Refused, match="there is no reserve"):
        Minutes(board=BOARD).after(asked[0])


def test_raises_add_up_by_account_and_only_once_approved() -> None:
    asked = [
        ask(number, action=Action.RAISE, account=name, datasets=(), amount=Budget(epsilon=number))
        for number, name in ((1, "oncology"), (2, "oncology"), (3, "births"))
    ]
    minutes = Minutes.replay(BOARD, [*asked, vote("ben"), vote("cho"), vote("ben", proposal=2)])
    assert minutes.raised("oncology") == Budget(epsilon=1)
    assert minutes.after(vote("dov", proposal=2)).raised("oncology") == Budget(epsilon=3)
    assert minutes.raised("births") == Budget.none()


@pytest.mark.parametrize(
    "fields",
    [
        {"action": Action.RAISE},
        {"action": Action.UNLOCK, "account": "oncology"},
        {"action": Action.RAISE, "account": "oncology", "amount": Budget.none()},
        {"datasets": ()},
        {"expires": on(1)},
        {"at": "2026-01-01T09:00:00"},
        {"subject": " "},
        {"datasets": ("births", "births")},
    ],
)
def test_proposals_that_make_no_sense_are_refused(fields: dict[str, object]) -> None:
    with pytest.raises((InvalidInput, NotDeclared)):
        ask(**fields)


everybody = ("ada", "ben", "cho", "dov", "hana", "ivo", "jun", "mele", "noa", "eve")
attempts = st.lists(st.tuples(st.sampled_from(everybody), st.sampled_from(list(Choice))), max_size=16)


@settings(deadline=None)
@given(attempts=attempts, sites=st.sampled_from([(), ("north",)]), dataset=st.sampled_from(["births", "visits", "x"]))
def test_whatever_is_tried_approval_means_every_rule_was_kept(
    attempts: list[tuple[str, Choice]], sites: tuple[str, ...], dataset: str
) -> None:
    minutes = Minutes(board=BOARD).after(ask(sites=sites, datasets=(dataset,)))
    for voter, choice in attempts:
        before = minutes
        try:
            minutes = minutes.after(vote(voter, choice))
        except Refused:
            assert minutes == before
    assert Minutes.replay(BOARD, minutes.entries) == minutes
    decision = minutes.decision(1)
    if decision is None or decision.outcome is not Outcome.APPROVED:
        return
    yes, no = set(decision.yes), set(decision.no)
    assert "ada" not in yes
    assert len(decision.yes) == len(yes)
    assert len(yes & set(BOARD.members)) >= 2
    assert len(yes & set(BOARD.members)) > len(no & set(BOARD.members))
    if sites:
        north = BOARD.committee("north")
        assert "jun" in yes
        assert len(yes & set(north.members)) >= north.quorum
    for community in BOARD.communities:
        assert dataset not in community.datasets or not no & set(community.representatives)


TERMS = Terms(
    dataset="visits",
    purposes=("research", "public health"),
    ground=Ground.CONSENT,
    condition=SpecialCategory.EXPLICIT_CONSENT,
    hipaa=HipaaBasis.NOT_SUBJECT,
    consent=("research/oncology", "public health"),
    consent_text="form 3 of 2024",
    forbidden=("public health/policing",),
    recipients=("public", "ministry"),
    until="2026-12-31",
    sites=("north",),
)
USE = Use(dataset="visits", purpose="research/oncology/screening", recipient="public")


@pytest.mark.claim("S1-27")
@pytest.mark.parametrize(
    ("use", "words"),
    [
        ({"purpose": "marketing"}, "may be used for research, public health, and this release is for marketing"),
        ({"purpose": "research"}, r"agreed to research/oncology, public health \(form 3 of 2024\)"),
        ({"purpose": "researchers"}, "may be used for"),
        ({"purpose": "public health/policing/x"}, "must not be used for public health/policing"),
        ({"purpose": "public health"}, "must not be used for public health/policing"),  # too wide to leave it out
        ({"recipient": "insurer"}, "would go to insurer"),
        ({"dataset": "births"}, "the terms are those of 'visits'"),
    ],
)
def test_a_use_outside_purpose_consent_or_recipients_is_refused(use: dict[str, str], words: str) -> None:
    day = date(2026, 12, 31)
    consent.check(USE, TERMS, day)
    with pytest.raises(Refused, match=words) as refused:
        consent.check(replace(USE, **use), TERMS, day)
    assert "Nothing was read and nothing was spent" in str(refused.value)
    assert "compliant" not in str(refused.value)


@pytest.mark.claim("S1-27")
def test_time_limits_and_limited_data_sets_are_checked() -> None:
    with pytest.raises(Refused, match="until 2026-12-31, and today is 2027-01-01"):
        consent.check(USE, TERMS, date(2027, 1, 1))
    other = replace(
        TERMS,
        ground=Ground.PUBLIC_TASK,
        condition=SpecialCategory.RESEARCH,
        purposes=("research", "planning"),
        consent=(),
    )
    planning = replace(USE, purpose="planning")
    consent.check(planning, other, date(2026, 1, 1))
    limited = replace(other, hipaa=HipaaBasis.LIMITED)
    consent.check(USE, limited, date(2026, 1, 1))
    with pytest.raises(Refused, match="limited data set"):
        consent.check(planning, limited, date(2026, 1, 1))


@pytest.mark.parametrize(
    "fields",
    [
        {"purposes": ()}, {"consent": ()}, {"consent_text": " "}, {"until": "2026-13-01"}, {"purposes": ("a//b",)},
        {"dataset": ""}, {"purposes": (" research",)},
        {"ground": Ground.PUBLIC_TASK, "condition": SpecialCategory.RESEARCH, "hipaa": HipaaBasis.AUTHORISATION,
         "consent": ()},
    ],
)  # fmt: skip
def test_terms_that_leave_out_what_binds_are_refused(fields: dict[str, object]) -> None:
    with pytest.raises((InvalidInput, NotDeclared)):
        replace(TERMS, **fields)


OPEN = [ask(datasets=("visits",), sites=("north",)), vote("ben"), vote("cho"), vote("jun")]
COST = Budget(epsilon=1)


def allowed(*entries: BoardEntry, terms: Terms = TERMS, since: int = 0, at: str = on(20)) -> int | None:
    return permit(USE, terms, Minutes.replay(BOARD, entries), at=at, cost=COST, since=since)


@pytest.mark.claim("S1-20", "S1-29")
def test_a_release_needs_an_approval_by_the_board_and_by_every_site() -> None:
    assert allowed(*OPEN) == 1
    with pytest.raises(Refused, match="no approval of 'visits' by the board"):
        allowed(*OPEN[:-1])
    without = [ask(datasets=("visits",)), vote("ben"), vote("cho")]
    with pytest.raises(Refused, match="the committee of north has not approved"):
        allowed(*without)
    assert allowed(*without, terms=replace(TERMS, sites=())) == 1


@pytest.mark.claim("S1-28", "S1-29")
def test_a_veto_blocks_the_next_release_and_old_approvals_do_not_revive() -> None:
    veto = Veto(at=on(3), community="coast", voter="noa", dataset="visits", reason="not asked")
    lifted = VetoLifted(at=on(3), community="coast", voter="noa", dataset="visits", reason="asked")
    with pytest.raises(Refused, match="under a community's veto: coast since"):
        allowed(*OPEN, veto)
    with pytest.raises(Refused, match="no approval of 'visits'"):
        allowed(*OPEN, veto, lifted)
    anew = [replace(OPEN[0], number=2, at=on(3)), *(vote(name, proposal=2, at=on(3)) for name in ("ben", "cho", "jun"))]
    assert allowed(*OPEN, veto, lifted, *anew) == 2


@pytest.mark.claim("S0-31")
def test_a_release_without_recorded_reasons_is_refused() -> None:
    with pytest.raises(Refused, match="no reason is recorded for ε = 1"):
        allowed()
    with pytest.raises(Refused, match="with its terms as they are now"):
        allowed(*OPEN, since=len(OPEN))  # the terms were changed after the board approved
    assert allowed(*OPEN) == 1


@pytest.mark.claim("S1-27")
def test_the_last_look_holds_the_terms_too() -> None:
    with pytest.raises(Refused, match="until 2026-12-31"):
        allowed(*OPEN, at="2027-01-01T00:00:00+00:00")


def test_everything_said_in_the_board_is_a_document() -> None:
    kinds = Registry((*declared.DECLARATIONS, *consent.DECLARATIONS))
    veto = Veto(at=on(3), community="coast", voter="noa", dataset="visits", reason="not asked")
    minutes = Minutes.replay(BOARD, [*OPEN, veto])
    for entry in (BOARD, TERMS, USE, *minutes.entries, *minutes.decisions):
        assert kinds.decode(parse(canonical(encode(entry)))) == entry
