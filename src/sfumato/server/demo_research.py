"""The research project of the demonstration: approved by the board, opened, with a program that is ready to run."""

from collections.abc import Callable

from sfumato.core.signature import SigningKey
from sfumato.governance.board import Reasons
from sfumato.governance.research_entries import Project
from sfumato.server.research.desk import research_of
from sfumato.server.service import Service

__all__ = ["RESEARCHER", "open_research_project"]

RESEARCHER, NAME = "rosa", "pressure"
PROGRAM = """import sfumato as sf

environment = sf.connect()
environment.sql("SELECT sex, AVG(sbp) AS pressure FROM visits GROUP BY sex", epsilon=0.2)
environment.sql("SELECT region, COUNT(*) AS patients FROM visits GROUP BY region", epsilon=0.3)
"""
WHY = Reasons(
    benefit="Whether blood pressure is controlled equally well in every region becomes known.",
    risk="Whoever knows that somebody was treated here learns a little more, within the budget of the project.",
    choice="With ε = 2 regions that differ by 5 mmHg are told apart.",
)


def open_research_project(
    service: Service, account: str, key: SigningKey, approve: Callable[[str, str, Reasons], int]
) -> None:
    """Draft, ask for and open a project, and hand a program in; ``approve`` has the board approve a subject."""
    project = Project(
        name=NAME,
        purpose="research/pressure",
        recipient="public",
        account=account,
        people=((RESEARCHER, key.public_text),),
        columns=(("visits", ("region", "sex", "sbp")),),
    )
    desk = research_of(service)
    desk.draft(project, by=RESEARCHER)
    service.ledger.open_project(project, proposal=approve(project.subject, account, WHY))
    service.ledger.submit_program(NAME, by=RESEARCHER, code=PROGRAM, key=key)
    approve(project.program_subject("script", PROGRAM), account, WHY)
