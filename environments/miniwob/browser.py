"""Find, start and end a Chromium."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from swarm_ui.environments.miniwob.cdp import Connection
from swarm_ui.environments.miniwob.cdp_transport import Pipe, Socket, Transport
from swarm_ui.errors import ConfigError, EnvironmentFault

BROWSER_VARIABLE = "SWARM_UI_BROWSER"
INSTALL_HINT = (
    "No Chromium found. Install one (Debian: apt-get install chromium-headless-shell, or "
    f"chromium; elsewhere: Google Chrome), or set {BROWSER_VARIABLE} to its path."
)
_PREFIX = "swarm-ui-browser-"
PIPES = os.name == "posix"
"""Whether a browser talks over pipes; otherwise it opens a port on this machine."""
# The browser expects the pipes as file descriptors 3 and 4. Its own output is discarded.
_ONTO_PIPES = ("/bin/sh", "-c", 'exec 3<&0 4>&1 </dev/null >/dev/null; exec "$@"', "sh")
LAUNCH_TIMEOUT = 30.0
"""Seconds a browser may take to start."""

# The launcher scripts in /usr/bin add flags of the distribution, so the binaries are tried first.
_PLACES = (
    "/usr/lib/chromium/chromium-headless-shell",
    "chromium-headless-shell",
    "chrome-headless-shell",
    "/usr/lib/chromium/chromium",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
_FLAGS = (
    "--headless",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-sync",
    "--metrics-recording-only",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-pings",
    "--disable-breakpad",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-background-timer-throttling",
    "--disable-renderer-backgrounding",
    "--disable-backgrounding-occluded-windows",
    "--hide-scrollbars",
    "--mute-audio",
    "--password-store=basic",
    "--use-mock-keychain",
)

# Only the headless shell can draw frames on request. While a key scrolls a page smoothly, it would
# not answer the request for a frame.
_ON_REQUEST = (
    "--enable-begin-frame-control",
    "--run-all-compositor-stages-before-draw",
    "--disable-smooth-scrolling",
)


def find_browser() -> Path | None:
    """The Chromium to use: ``$SWARM_UI_BROWSER``, else the smallest installed one, else ``None``.

    Raises:
        ConfigError: the variable is set and names no executable.
    """
    chosen = os.environ.get(BROWSER_VARIABLE)
    if chosen:
        found = shutil.which(chosen)
        if found is None:
            raise ConfigError(f"{BROWSER_VARIABLE}={chosen!r}: no such executable")
        return Path(found)
    for place in _PLACES:
        found = shutil.which(place)
        if found is not None:
            return Path(found)
    return None


class Browser:
    """A running Chromium with its own profile, and the connection to it."""

    def __init__(
        self, process: subprocess.Popen[bytes], home: Path, lock: int, *, draws_on_request: bool
    ) -> None:
        self._process = process
        self.home = home
        """The browser's own folder, removed when it ends."""
        self._lock = lock
        self._guard = None if shutil.which("setpriv") else _guard(process.pid)
        self.frames = asyncio.Lock() if draws_on_request else None
        """Held while a page draws a frame on request; ``None``: pages draw by themselves."""
        self._connection: Connection | None = None
        atexit.register(self.kill)

    @classmethod
    async def launch(
        cls, binary: Path | None = None, *, flags: Sequence[str] = (), on_request: bool = True
    ) -> Browser:
        """Start a browser and connect to it.

        Args:
            binary: default: :func:`find_browser`.
            flags: added to its command line.
            on_request: draw frames only on request, if the browser supports it.

        Raises:
            ConfigError: no browser is installed.
            EnvironmentFault: the browser does not start.
        """
        binary = binary or find_browser()
        if binary is None:
            raise ConfigError(INSTALL_HINT)
        await asyncio.to_thread(_clear_up)
        on_request = on_request and _is_shell(binary)
        home = Path(tempfile.mkdtemp(prefix=_PREFIX))
        lock = _hold(home)
        to, said = (os.pipe(), os.pipe()) if PIPES else ((-1, -1), (-1, -1))
        try:
            command = _command(binary, home / "profile", (*flags, *_ON_REQUEST * on_request))
            process = _start(command, home, to[0], said[1])
        except OSError as error:
            os.close(lock)
            _close(*to, *said)
            shutil.rmtree(home, ignore_errors=True)
            raise EnvironmentFault(f"cannot start {binary}: {error}") from error
        _close(to[0], said[1])  # so that our ends report when the browser has ended
        browser = cls(process, home, lock, draws_on_request=on_request)
        try:
            await browser._connect(binary, said[0], to[1])
        except BaseException:  # re-raised: a cancelled start leaves no process behind
            browser.kill()
            raise
        return browser

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        connection = self._connection
        return connection is not None and not connection.lost and self._process.poll() is None

    @property
    def connection(self) -> Connection:
        if self._connection is None:
            raise EnvironmentFault("the browser is closed; start another one with Browser.launch")
        return self._connection

    async def close(self) -> None:
        """End the browser and remove its profile; safe to call twice."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()
        await asyncio.to_thread(self.kill)

    def kill(self) -> None:
        """End the browser and remove its profile without an event loop; runs when the interpreter
        ends."""
        atexit.unregister(self.kill)
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if hasattr(os, "killpg"):
                    os.killpg(self._process.pid, signal.SIGKILL)
                else:
                    self._process.kill()
        self._process.wait()
        if self._guard is not None:
            self._guard.kill()
            self._guard.communicate()
            self._guard = None
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1
        for _ in range(50):  # a renderer may write into the profile for a moment
            _remove(self.home)
            if not self.home.exists():
                return

    async def _connect(self, binary: Path, reads: int, writes: int) -> None:
        """Open the connection and wait until the browser answers."""
        connection = self._connection = Connection()
        transport: Transport
        if PIPES:
            transport = await Pipe.open(reads, writes, connection.receive, connection.lose)
        else:
            address = await self._address(binary)
            transport = await Socket.open(address, connection.receive, connection.lose)
        connection.use(transport)
        try:
            await asyncio.wait_for(connection.call("Browser.getVersion"), LAUNCH_TIMEOUT)
        except (EnvironmentFault, TimeoutError) as error:
            await connection.close()
            raise await asyncio.to_thread(self._not_ready, binary) from error

    async def _address(self, binary: Path) -> str:
        """The DevTools address. A browser with a port prints it when it is ready."""
        log = self.home / "stderr"
        deadline = asyncio.get_running_loop().time() + LAUNCH_TIMEOUT
        while self._process.poll() is None and asyncio.get_running_loop().time() < deadline:
            text = log.read_text(encoding="utf-8", errors="replace")
            found = re.search(r"DevTools listening on (ws://\S+)\s", text)
            if found:
                return found.group(1)
            await asyncio.sleep(0.02)
        raise self._not_ready(binary)

    def _not_ready(self, binary: Path) -> EnvironmentFault:
        """The error for a browser that does not answer, with the end of its log."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1)  # it closes its pipes a moment before it ends
        ended = self._process.poll() is not None
        how = "ended at once" if ended else f"was not ready in {LAUNCH_TIMEOUT:.0f} s"
        text = (self.home / "stderr").read_text(encoding="utf-8", errors="replace")
        return EnvironmentFault(f"{binary} {how}; it said: {text[-500:].strip()}")


def _start(command: list[str], home: Path, reads: int, writes: int) -> subprocess.Popen[bytes]:
    """Start a browser; ``reads`` and ``writes`` are its ends of the pipes, if it has pipes."""
    with (home / "stderr").open("wb") as log:
        return subprocess.Popen(
            command,
            stdin=reads if PIPES else subprocess.DEVNULL,
            stdout=writes if PIPES else subprocess.DEVNULL,
            stderr=log,
            start_new_session=True,
        )


def _close(*files: int) -> None:
    for file in files:
        if file >= 0:
            os.close(file)


def _is_shell(binary: Path) -> bool:
    return "headless" in binary.resolve().name


def _command(binary: Path, profile: Path, flags: Sequence[str]) -> list[str]:
    talk = "--remote-debugging-pipe" if PIPES else "--remote-debugging-port=0"
    command = [str(binary), *_FLAGS, *flags, talk, f"--user-data-dir={profile}"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command.append("--no-sandbox")  # Chromium refuses to start as root otherwise
    setpriv = shutil.which("setpriv")
    if setpriv is not None:  # Linux: the browser ends even when this process is killed
        command = [setpriv, "--pdeathsig", "KILL", "--", *command]
    return [*(_ONTO_PIPES if PIPES else ()), *command, "about:blank"]


def _guard(pid: int) -> subprocess.Popen[bytes] | None:
    """A shell that ends the browser when this process has ended, for systems without ``setpriv``.

    It waits for the end of a pipe that only this process holds open.
    """
    shell = shutil.which("sh")
    if shell is None or not hasattr(os, "killpg"):
        return None
    command = [shell, "-c", f"read -r _; kill -9 -{pid}"]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    )


def _hold(home: Path) -> int:
    """Lock a folder; the lock ends with this process, however it ends."""
    new = home / "lock.new"
    lock = os.open(new, os.O_CREAT | os.O_RDWR)
    with contextlib.suppress(ImportError):
        import fcntl

        fcntl.flock(lock, fcntl.LOCK_EX)
    new.replace(home / "lock")  # no other process sees the file before it is locked
    return lock


def _remove(home: Path) -> None:
    """Remove a browser's folder, and the temporary folder with the socket of its profile."""
    with contextlib.suppress(OSError):
        socket = (home / "profile" / "SingletonSocket").readlink()
        if socket.parent.parent == home.parent:
            shutil.rmtree(socket.parent, ignore_errors=True)
    shutil.rmtree(home, ignore_errors=True)


def _clear_up() -> None:
    """Remove the folders that killed processes left behind."""
    try:
        import fcntl
    except ImportError:  # Windows: the system cleans its temporary files
        return
    for home in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        try:
            lock = os.open(home / "lock", os.O_RDWR)
        except OSError:  # it belongs to another user, or is being created
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            continue  # in use
        else:
            _remove(home)
        finally:
            os.close(lock)
