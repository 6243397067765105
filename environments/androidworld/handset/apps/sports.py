"""OpenTracks: recorded activities. Nothing is recorded, because the handset has no GPS."""

from __future__ import annotations

from datetime import UTC, datetime

from swarm_ui.environments.androidworld.handset import databases as db
from swarm_ui.environments.androidworld.handset.apps.record_list import FormField, RecordListApp
from swarm_ui.environments.phone.state import Row

MILE = 1609.34
"""The length of a mile in metres."""
TRACKS = db.single_table(
    "/data/data/de.dennisguse.opentracks/databases/database.db",
    "tracks", "_id", "track",
    (
        db.text("name"), db.text("description"), db.text("category"), db.text("activity_type"),
        db.integer("starttime"), db.integer("stoptime"), db.integer("numpoints"),
        db.real("totaldistance"), db.integer("totaltime"), db.integer("movingtime"),
        db.real("avgspeed"), db.real("avgmovingspeed"), db.real("maxspeed"),
        db.real("minelevation"), db.real("maxelevation"), db.real("elevationgain"),
        db.text("icon", "", None), db.blob("uuid"), db.real("elevationloss"),
        db.integer("starttime_offset"),
    ),
)  # fmt: skip


def _when(record: Row) -> str:
    return f"{datetime.fromtimestamp(int(record['starttime']) / 1000, UTC):%a %Y-%m-%d %H:%M}"


def _length(record: Row) -> str:
    return f"{float(record['totaldistance']) / MILE:.2f} mi"


def _time(record: Row) -> str:
    minutes, seconds = divmod(int(record["totaltime"]) // 1000, 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}"


def _row(record: Row) -> tuple[str, str]:
    parts = (record["category"], _when(record), _length(record), _time(record))
    return record["name"], " · ".join(parts)


def _detail(record: Row) -> list[tuple[str, str]]:
    return [
        ("Activity type", record["category"]),
        ("Description", record["description"]),
        ("Start", _when(record)),
        ("Distance", _length(record)),
        ("Total time", _time(record)),
        ("Elevation gain", f"{float(record['elevationgain']):.0f} m"),
        ("Elevation loss", f"{float(record['elevationloss']):.0f} m"),
    ]


LIST = RecordListApp(
    app="opentracks",
    title="OpenTracks",
    table="track",
    fields=(
        FormField("name", "Name"),
        FormField("category", "Activity type"),
        FormField("description", "Description"),
    ),
    row=_row,
    sort_key=lambda key, record: -int(record["starttime"]),
    detail=_detail,
)
SPORTS = LIST.spec("de.dennisguse.opentracks", "de.dennisguse.opentracks.TrackListActivity", TRACKS)
