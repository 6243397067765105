"""The words and clauses of the blind set. A test compares them with those of training."""

from __future__ import annotations

from collections.abc import Mapping

from swarm_ui.environments.phone.invented.words import WordLists, phrases, words

BLIND_WORDS = WordLists(
    records=words("""
manuscript heirloom lamppost gadget blueprint ferret hamster turnip pumpkin cello bassoon canoe
glider caravan turret iceberg meteor buoy rudder petition affidavit tribunal alibi pension mortgage
croissant pretzel casserole marinade bandage stethoscope sundial telegram postcard mosaic ballad
sonnet cauldron hammock chandelier pendulum
"""),
    brands=words("""
obsidian halcyon tamarind sycamore magpie puffin walrus gazelle monsoon typhoon vortex zenith
solstice equinox periwinkle marigold chestnut hickory cinnamon paprika
"""),
    purposes=words("cabinet almanac notebook dossier vault stand shelf roll"),
    syllables=words("""
hu ye wo nu gly thry shu kee spo twi smu kny vro skel blon hest yarn queb juf wim drax phe olm urt
isk emb anth ulf
"""),
    fields={
        "phrase": words("gist synopsis blurb rationale"),
        "thing": words("ingredient keepsake garnish fitting"),
        "chore": words("obligation undertaking pursuit"),
        "person": words("landlord curator mentor nominee"),
        "time": words("daybreak onset showtime liftoff"),
        "amount": words("surcharge royalty stipend ransom"),
        "count": words("headcount tally pieces strokes"),
        "phone": words("pager switchboard"),
        "email": words("webmail newsletter"),
        "street": words("premises whereabouts embankment"),
        "code": words("cipher hallmark imprint"),
        "date": words("maturity jubilee inception"),
        "share": words("yield turnout moisture"),
        "mass": words("heft tare burden"),
    },
    titles={
        "phrase": words("caption epithet inscription"),
        "title": words("headword designation moniker"),
        "chore": words("occupation endeavour"),
        "person": words("proprietor incumbent surname"),
        "thing": words("article exhibit relic"),
        "code": words("stencil registration signature"),
        "word": words("alias byname"),
        "street": words("locality dwelling"),
    },
    choices={
        "rarity": words("ordinary scarce unique"),
        "hue": words("maroon ivory khaki turquoise"),
        "spiciness": words("mild zesty fiery"),
        "tempo": words("slow steady brisk"),
        "terrain": words("swamp plateau ridge"),
        "credence": words("plausible doubtful refuted"),
        "humour": words("cheerful grumpy pensive"),
        "standing": words("apprentice journeyman virtuoso"),
        "phase": words("dormant budding blooming"),
        "tide": words("ebb slack flood"),
        "packaging": words("boxed wrapped loose"),
        "cloth": words("linen velvet denim"),
    },
    record_switches=words("""
laminated refrigerated notarised sponsored vintage poisonous borrowed engraved licensed quarantined
"""),
    done_switches=words("fulfilled concluded accomplished dispatched"),
    setting_switches=phrases("""
echo, nocturne, subtitles, banners, thumbnails, whispering, glow, snap zoom,
mirroring, capitals, gentle wake, wobble, parallax, sticky corners, kiosk, breadcrumbs,
cheering, drowsy dimming, halo, greyscale, incognito, juggling, karaoke, magnifier,
panorama, quiet hours, rulers, sparkle, ticker, shake gesture, watermark, yawning, zigzag
"""),
    setting_choices={
        "ink": words("umber ultramarine vermilion"),
        "distances": words("league furlong fathom"),
        "dialect": words("northern coastal highland"),
        "snooze length": words("brief moderate lengthy"),
        "cursor": words("arrowhead crosshair caret"),
        "transition": words("slide curl dissolve"),
        "jingle": words("zither harpsichord bagpipe"),
        "crowding": words("sparse cosy crammed"),
    },
    sections=words("""
diagnostics appendix miscellany playground conservatory scullery balcony mezzanine workbench
hideout lobby vestibule observatory pantry sandbox
"""),
    options=phrases("parameters, knobs, fine tuning, machinery, levers, internals"),
    add=words("begin commence introduce originate initiate"),
    save=phrases("finalise, conclude, settle, commit, wrap"),
    edit=phrases("rewrite, reshape, recast, refine, rephrase"),
    delete=phrases("obliterate, purge, expunge, shred, banish"),
    cancel=phrases("step out, retract, retreat, bail out"),
    search=phrases("hunt, seek, scout"),
)

BLIND_CLAUSES: Mapping[str, tuple[str, ...]] = {
    "create": (
        "use {add} for a {record} holding {fields}",
        "what is lacking is a {record} holding {fields} ; {add_verb} it",
    ),
    "edit": (
        "use {edit} on the {record} {title} so that its {field} reads {value}",
        "the {field} of the {record} {title} ought to read {value} from here on",
    ),
    "edit2": ("use {edit} on the {record} {title} so that it reads {fields}",),
    "delete": (
        "the {record} {title} is one to {delete}",
        "nobody wants the {record} {title} , so {delete} it",
    ),
    "toggle": (
        "bring {switch} to {state} on the {record} {title}",
        "for the {record} {title} have {switch} go {state}",
    ),
    "setting": ("bring {switch} to {state}", "have {switch} go {state}"),
    "check": ("record {titles} as {switch}", "count {titles} among what is {switch}"),
    "choice": ("opt for {option} under {switch}", "where {switch} is asked , go with {option}"),
    "read": (
        "quote the {field} given for the {record} {title}",
        "how does the {field} of the {record} {title} read",
    ),
    "state": ("reply on or off as {switch} stands for the {record} {title}",),
    "show": (
        "bring the {record} {title} onto the screen",
        "leave the {record} {title} in front",
    ),
    "open": ("bring {app} to the front", "move over to {app}"),
    "copy": (
        "reuse the {field} of {record} {title}{from_app} as the {field2} of a fresh"
        " {record2}{in_app2} holding {fields}",
    ),
    "carry": (
        "align the {field2} of {record2} {title2}{in_app2} with the {field} of the {record}"
        " {title}{from_app}",
    ),
}
"""Kind -> its clauses, plain ones as in :data:`~.clauses.FEW`."""
