"""Real engines for the tests: a private PostgreSQL, a Redis and a local Spark, one for each worker.

Each is started when it is asked for.
Where one is not installed its tests are skipped with the reason, or fail if SFUMATO_REQUIRE_ALL=1.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.parts import absent, package

USER, PASSWORD = "steward", "pass@word:7/x?y"  # of a private server that lives as long as the tests
PATIENCE = 60.0
QUICK = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "shared_buffers": "32MB"}
UNCLOSED = r"unclosed <socket.*laddr=.'127\.0\.0\.1'.*raddr=.'127\.0\.0\.1'"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put what needs Spark in front, so that one worker has all of it and one session of Spark is enough."""
    items.sort(key=lambda item: not ("spark" in getattr(item, "fixturenames", ()) or "spark" in item.name.lower()))


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The URL of an empty database on a private server that only this machine reaches."""
    package("psycopg")
    if postgres_programs() is None:
        absent("no PostgreSQL server is installed in /usr/lib/postgresql")
    with private_postgres(**QUICK) as server:
        yield server.url


@pytest.fixture(scope="session")
def redis_server() -> Iterator[str]:
    """The URL of a private Redis that only this machine reaches and that keeps nothing."""
    package("redis")
    if shutil.which("redis-server") is None:
        absent("no Redis server is installed")
    folder = tempfile.mkdtemp(prefix="sfumato-redis-")
    try:
        with private_redis(folder) as url:
            yield url
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def redis_url(redis_server: str) -> str:
    """An empty Redis."""
    import redis

    with redis.Redis.from_url(redis_server) as client:
        client.flushall()
    return redis_server


@contextmanager
def private_redis(folder: str) -> Iterator[str]:
    """A Redis of one's own, which ends with the block, and with this process if that is killed."""
    import redis

    alone = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
    for _ in range(5):  # another program may take the port that was free a moment ago
        port = _free_port()
        words = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", folder]
        server = subprocess.Popen([*alone, "redis-server", *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        try:
            url, until = f"redis://127.0.0.1:{port}/0", time.monotonic() + PATIENCE
            while server.poll() is None and time.monotonic() < until:
                with suppress(redis.exceptions.ConnectionError), redis.Redis.from_url(url) as client:
                    client.ping()
                    yield url
                    return
                time.sleep(0.05)
        finally:
            server.kill()
            server.wait()
    pytest.fail("the private Redis did not start")


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A Spark session of two threads, in its defaults (ANSI mode included), that talks to nobody."""
    package("pyspark")
    if shutil.which("java") is None:
        absent("Spark needs a Java runtime, and there is none")
    from pyspark.sql import SparkSession

    # Spark's driver reads each result from a socket that it leaves to the garbage collector: now, and in later tests.
    warnings.filterwarnings("ignore", UNCLOSED, ResourceWarning)
    request.config.addinivalue_line("filterwarnings", f"ignore:{UNCLOSED}:ResourceWarning")
    folder = tempfile.mkdtemp(prefix="sfumato-spark-")
    # Python workers must be this very interpreter; the others keep Spark off every network interface but loopback.
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    os.environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_HOSTNAME": "localhost"}
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # short queries, few cores
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.local.dir": folder,
        "spark.log.level": "ERROR",
    }
    builder = SparkSession.builder.master("local[2]").appName("sfumato tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        session = builder.getOrCreate()
        yield session
        session.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def postgres_programs() -> Path | None:
    """Where the programs of the newest installed PostgreSQL are."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda program: int(program.parts[-3]))
    return found[-1].parent if found else None


@contextmanager
def private_postgres(**settings: str) -> Iterator["Server"]:
    """A server of one's own, thrown away afterwards.

    Its default collation is not bytewise (English, by ICU), so that a comparison which trusts the database shows.
    """
    programs = postgres_programs()
    if programs is None:
        raise FileNotFoundError("no PostgreSQL server is installed in /usr/lib/postgresql")
    folder = Path(tempfile.mkdtemp(prefix="sfumato-postgres-"))
    try:
        with Server(folder, programs, settings) as server:
            yield server
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Server:
    """A PostgreSQL server in a folder, from its first start to its stop."""

    def __init__(self, folder: Path, programs: Path, settings: dict[str, str]) -> None:
        self.folder, self.programs, self.settings = folder, programs, settings
        # PostgreSQL refuses to run as root, so there it runs as the user that its package made.
        self.owner: dict[str, Any] = {}
        if os.geteuid() == 0:
            self.owner = {"user": "postgres", "group": "postgres", "extra_groups": []}
            shutil.chown(folder, "postgres", "postgres")

    @property
    def url(self) -> str:
        """Its first database."""
        return f"postgresql://{USER}:{_quoted(PASSWORD)}@127.0.0.1:{self.port}/postgres"

    def __enter__(self) -> "Server":
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)  # inside a folder that only its owner can enter
        words = [self.programs / "initdb", "-D", self.folder / "data", "-U", USER, "-A", "scram-sha-256"]
        words += ["--pwfile", secret, "-E", "UTF8", "--locale=C.UTF-8", "--locale-provider=icu", "--icu-locale=en-US"]
        subprocess.run([*words, "--no-sync"], check=True, cwd=self.folder, stdout=subprocess.DEVNULL, **self.owner)
        for _ in range(5):  # another program may take the port that was free a moment ago
            self.port = _free_port()
            if self.start():
                return self
        pytest.fail("the private PostgreSQL did not start: " + (self.folder / "log").read_text()[-2000:])

    def start(self) -> bool:
        """Start it, for the first time or again; whether it answers."""
        import psycopg

        port = self.port
        settings = {"listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": "", **self.settings}
        words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        # Tests that are killed cannot stop their server; then it is told to stop itself.
        alone = ["setpriv", "--pdeathsig", "INT"] if shutil.which("setpriv") else []
        with (self.folder / "log").open("wb") as log:
            self.server = subprocess.Popen(
                [*alone, self.programs / "postgres", "-D", self.folder / "data", *words],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                **self.owner,
            )
        deadline = time.monotonic() + PATIENCE
        while self.server.poll() is None and time.monotonic() < deadline:
            with suppress(psycopg.OperationalError):
                psycopg.connect(host="127.0.0.1", port=port, user=USER, password=PASSWORD, dbname="postgres").close()
                return True
            time.sleep(0.05)
        self.stop()
        return False

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self, how: int = signal.SIGINT) -> None:
        """Stop it: open sessions are ended (SIGINT), or everything at once, as in a crash (SIGQUIT)."""
        self.server.send_signal(how)
        try:
            self.server.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.server.kill()
            self.server.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _quoted(text: str) -> str:
    from urllib.parse import quote

    return quote(text, safe="")
