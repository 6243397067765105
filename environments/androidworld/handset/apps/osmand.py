"""OsmAnd: places of a small map, favorites, markers and planned tracks. It has no GPS position."""

from __future__ import annotations

import re
from unicodedata import normalize
from xml.etree import ElementTree as ET

from swarm_ui.environments.androidworld.handset import widgets as ui
from swarm_ui.environments.androidworld.handset.file_system import SHARED, Database, parent, table
from swarm_ui.environments.androidworld.handset.handset import AppSpec, Call, Handset, Line, Page
from swarm_ui.environments.phone.state import Screen

APP = "osmand"
PLACES = {
    "Balzers": (47.0689, 9.5062), "Bendern": (47.2122, 9.5062), "Eschen": (47.2108, 9.5223),
    "Malbun": (47.1026, 9.6083), "Mauren": (47.2181, 9.5426), "Nendeln": (47.1974, 9.5431),
    "Oberplanken": (47.1785, 9.5450), "Planken": (47.1859, 9.5452), "Rotenboden": (47.1276, 9.5387),
    "Ruggell": (47.2398, 9.5263), "Schaan": (47.1663, 9.5103), "Schaanwald": (47.2165, 9.5700),
    "Schönberg": (47.1304, 9.5930), "Triesen": (47.1070, 9.5275), "Vaduz": (47.1410, 9.5209),
}  # fmt: skip
"""Towns of Liechtenstein with latitude and longitude in degrees."""
MARKERS = Database(
    "/data/data/net.osmand/databases/map_markers_db",
    table("map_markers", real="marker_lat marker_lon",
          text="marker_id marker_description group_name group_key marker_next_key "
          "marker_map_object_name title",
          integer="marker_added marker_visited marker_color marker_disabled marker_selected",
          other="marker_active INTEGER DEFAULT 1"),
)  # fmt: skip
FILES = f"{SHARED}/Android/data/net.osmand/files"
FAVORITES = f"{FILES}/favorites/favorites.gpx"
_GPX = "http://www.topografix.com/GPX/1/1"


def find(query: str) -> dict[str, tuple[float, float]]:
    """Places whose names contain a text, or the point with the coordinates ``LAT, LON``."""
    point = re.fullmatch(r"\s*(-?\d{1,2}\.\d{1,9})[,\s]+(-?\d{1,3}\.\d{1,9})\s*", query)
    if point:
        return {f"{point[1]}, {point[2]}": (float(point[1]), float(point[2]))}
    town = _plain(query.partition(",")[0])
    return {name: at for name, at in PLACES.items() if town and town in _plain(name)}


def _plain(name: str) -> str:
    """A name without accents, in lower case."""
    return normalize("NFKD", name).encode("ascii", "ignore").decode().strip().casefold()


def _build(handset: Handset, screen: Screen) -> Page:
    if screen.kind == "place":
        return _place(screen.of)
    route, found = screen.kind == "route", find(handset.draft.get("search", ""))
    search = ui.field(handset, "Search", "search")
    rows = [
        ui.item(name, _said(*at), Call(_append, name) if route else ui.go("place", name))
        for name, at in found.items()
    ]
    if route:
        rows = [*map(ui.text_row, _points(handset)), *rows]
        save: Line = (ui.field(handset, "Track name", "name"), ui.button("Save", _save))
        return Page(title="Plan a route", rows=rows, top=[search], bottom=[save])
    menu = ui.button("Plan a route", ui.go("route"))
    return Page(title="Map", rows=rows or [ui.image("Map")], top=[search], bottom=[menu])


def _said(lat: float, lon: float) -> str:
    return f"{lat:.5f}, {lon:.5f}"


def _place(name: str) -> Page:
    rows = [
        ui.text_row(name, _said(*find(name)[name])),
        ui.button("Add favorite", Call(_add_favorite, name)),
        ui.button("Add marker", Call(_add_marker, name)),
    ]
    return Page(title=name, rows=rows)


def _gpx() -> ET.Element:
    return ET.Element(f"{{{_GPX}}}gpx", version="1.1", creator="OsmAnd (simulated)")


def _point(above: ET.Element, tag: str, place: str) -> ET.Element:
    lat, lon = find(place)[place]
    return ET.SubElement(above, f"{{{_GPX}}}{tag}", lat=f"{lat:.7f}", lon=f"{lon:.7f}")


def _write(handset: Handset, path: str, tree: ET.Element) -> None:
    handset.files.make(parent(path))
    handset.files.write(path, ET.tostring(tree, "utf-8"))


def _add_favorite(handset: Handset, place: str) -> str:
    known = handset.files.is_file(FAVORITES)
    tree = ET.fromstring(handset.files.read(FAVORITES)) if known else _gpx()
    ET.SubElement(_point(tree, "wpt", place), f"{{{_GPX}}}name").text = place
    _write(handset, FAVORITES, tree)
    handset.back()
    return "Favorite added"


def _add_marker(handset: Handset, place: str) -> str:
    lat, lon = find(place)[place]
    row = {"marker_map_object_name": place, "title": place, "marker_lat": lat, "marker_lon": lon}
    number = 1 + len(MARKERS.rows(handset, "map_markers"))
    row |= {"marker_id": f"marker-{number}", "marker_added": handset.now * 1000}
    MARKERS.insert(handset, "map_markers", row)
    handset.back()
    return "Marker added"


def _points(handset: Handset) -> list[str]:
    """Points of the planned route."""
    return list(filter(None, handset.draft.get("points", "").split("\n")))


def _append(handset: Handset, place: str) -> None:
    points = "\n".join([*_points(handset), place])
    handset.draft = {**handset.draft, "points": points, "search": ""}


def _save(handset: Handset) -> str:
    """Save the route as a track of straight lines between its points."""
    name, points = ui.typed_file_name(handset), _points(handset)
    if not name or len(points) < 2:
        return "A track needs a name and two points"
    tree = _gpx()
    segment = ET.SubElement(ET.SubElement(tree, f"{{{_GPX}}}trk"), f"{{{_GPX}}}trkseg")
    for place in points:
        _point(segment, "trkpt", place)
    _write(handset, f"{FILES}/tracks/{name}.gpx", tree)
    handset.back()
    return "Track saved"


OSMAND = AppSpec(
    APP, "net.osmand", "net.osmand.plus.activities.MapActivity", _build,
    databases=(MARKERS,),
    folders=(f"{FILES}/tracks",),
)  # fmt: skip
