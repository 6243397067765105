"""An adb program for :mod:`androidworld_fake_emulator`: it passes its arguments on."""

import json
import os
import re
import socket
import sys
import time


def main(args: list[str]) -> int:
    device = ""
    while args[:1] in (["-P"], ["-s"]):
        device = args[1] if args[0] == "-s" else device
        args = args[2:]
    if not device:  # a command for the server of adb, such as devices
        print("List of devices attached")
        return 0
    if "logcat" in args:  # an empty log, read until the reader ends
        reader = os.getppid()
        while "-c" not in args and os.getppid() == reader:
            time.sleep(0.2)
        return 0
    port = re.fullmatch(r"emulator-(\d+)", device)
    assert port is not None, device
    with socket.create_connection(("localhost", int(port[1]))) as console:
        console.sendall(json.dumps(args).encode() + b"\n")
        with console.makefile() as answer:
            code, output = json.loads(answer.readline())
    sys.stdout.buffer.write(bytes.fromhex(output))
    return int(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
