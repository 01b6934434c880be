"""A line to a service in this process, on which nobody waits for a deadline."""

import httpx

from tests.server.asked_services import AskedService, InProcess
from tests.server.visiting import Visiting


class Quick(InProcess):
    """Moves the clock of the service to each deadline, so that nobody waits."""

    def __init__(self, made: AskedService) -> None:
        super().__init__(Visiting(made.service))
        self._made = made

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if request.method == "GET" and "/questions/" in request.url.path:
            self._made.ended(request.url.path.split("/questions/")[1].partition("/")[0])
        return super().handle_request(request)
