"""A program that looks like an Android emulator from outside, with a handset inside.

    python androidworld_fake_emulator.py CONSOLE_PORT GRPC_PORT LOG

It serves the emulator's gRPC controller, and adb commands on the console port (see the program
``androidworld_fake_adb.py``). Like the app of android-env on a real device it sends accessibility
forests to the port that a broadcast names. Every call is a line of JSON in LOG.
"""

from __future__ import annotations

import json
import re
import socketserver
import sys
import threading
import time
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
from android_env.proto import emulator_controller_pb2 as messages
from android_env.proto import emulator_controller_pb2_grpc as services
from android_env.proto.a11y import a11y_pb2_grpc

from swarm_ui.environments.androidworld.handset import APPS, Adb, AdbFailure, Handset
from swarm_ui.environments.androidworld.handset.simulator import (
    HandsetSimulator,
    accessibility_forest,
)

FORWARDER = "accessibility_forwarder"
PERIOD = 0.02
"""Seconds between two accessibility forests."""


class FakeEmulator(services.EmulatorControllerServicer):  # type: ignore[misc]
    """The services of the emulator, and a log of the calls."""

    def __init__(self, log: Path) -> None:
        self.simulator = HandsetSimulator(Handset(APPS))
        self._log = log.open("a", buffering=1)
        self._forests: Any = None

    def note(self, *call: object) -> None:
        self._log.write(json.dumps(call) + "\n")

    def getStatus(self, request: Any, context: Any) -> Any:
        self.note("getStatus")
        return messages.EmulatorStatus(booted=True, uptime=1)

    def getScreenshot(self, request: Any, context: Any) -> Any:
        import numpy as np

        self.note("getScreenshot", messages.ImageFormat.ImgFormat.Name(request.format))
        rgb = self.simulator._get_screenshot_impl()
        rgba = np.dstack([rgb, np.full(rgb.shape[:2], 255, np.uint8)])
        shape = messages.ImageFormat(height=rgb.shape[0], width=rgb.shape[1])
        return messages.Image(format=shape, image=rgba.tobytes())

    def sendTouch(self, request: Any, context: Any) -> Any:
        touches = [(t.x, t.y, bool(t.pressure), t.identifier) for t in request.touches]
        self.note("sendTouch", touches)
        self.simulator.send_touch(touches)
        self.send_forest()
        return messages.google_dot_protobuf_dot_empty__pb2.Empty()

    def adb(self, args: list[str]) -> tuple[int, bytes]:
        """Exit code and output of an adb command."""
        self.note("adb", *args)
        said = " ".join(args)
        if FORWARDER in said:
            if port := re.search(r'SET_GRPC --ei "port" (\d+)', said):
                credentials = grpc.local_channel_credentials()
                channel = grpc.secure_channel(f"localhost:{port[1]}", credentials)
                self._forests = a11y_pb2_grpc.A11yServiceStub(channel)
            return 0, b"Broadcast completed: result=0\n"
        if args[0] == "install":
            return 0, b"Success\n"
        try:
            with self.simulator.lock:
                output = Adb(self.simulator.handset).run(args)
        except AdbFailure as failure:
            return failure.code, f"{failure}\n".encode()
        self.send_forest()
        return 0, output

    def send_forest(self) -> None:
        if self._forests is None:
            return
        with self.simulator.lock:
            forest = accessibility_forest(self.simulator.handset)
        try:
            self._forests.SendForest(forest, timeout=5.0)
        except grpc.RpcError:
            self._forests = None  # its server has ended; the next one is told by a broadcast


class ConsoleServer(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


class Console(socketserver.StreamRequestHandler):
    """Answers one adb command, a line of JSON, with a line of JSON."""

    def handle(self) -> None:
        line = self.rfile.readline()
        if line.strip():
            emulator: FakeEmulator = self.server.emulator  # type: ignore[attr-defined]
            code, output = emulator.adb(json.loads(line))
            self.wfile.write(json.dumps([code, output.hex()]).encode() + b"\n")


def main(console_port: str, grpc_port: str, log: str) -> None:
    emulator = FakeEmulator(Path(log))
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=4))
    services.add_EmulatorControllerServicer_to_server(emulator, server)
    server.add_secure_port(f"localhost:{grpc_port}", grpc.local_server_credentials())
    server.start()
    console = ConsoleServer(("localhost", int(console_port)), Console)
    console.emulator = emulator  # type: ignore[attr-defined]
    threading.Thread(target=console.serve_forever, daemon=True).start()
    print("ready", flush=True)
    while True:
        time.sleep(PERIOD)
        emulator.send_forest()


if __name__ == "__main__":
    main(*sys.argv[1:])
