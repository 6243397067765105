"""AndroidWorld, on an emulator or on a simulated handset."""

from __future__ import annotations
