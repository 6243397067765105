"""The clauses of goals, without the name of the app and without a polite frame.

The notation is that of :mod:`swarm_ui.environments.phone.invented.grammar`.
"""

from __future__ import annotations

from collections.abc import Mapping

IT = (
    "[[the |]{record} {title}|[the |that |my |]{record} [called|named|labelled|known as] {title}|"
    "{title}|the {title} {record}|{record} {title}]"
)
"""Phrases for one record; ``@it`` stands for them in the clauses below."""
_SET = "[set|change|update|edit|modify|adjust|alter|correct|revise|{edit}]"
_DROP = "[delete|remove|drop|get rid of|throw out|clear|wipe|eliminate|{delete}]"
_MAKE = "[add|create|make|enter|register|set up|put in|insert|store|start|{add_verb}]"
_TELL = "[tell me|give me|find out|look up|report|say|check|read out|let me know|get|name]"
SWITCH_ON = "[switch on|enable|activate]"
SWITCH_OFF = "[switch off|disable|deactivate]"

_TOGGLE = (
    "[turn|switch|flip] {state} {switch}@for",
    "[turn|switch|flip|set] {switch} {state}@for",
    "@flip {switch}@for",
    "[make sure|ensure|see to it] that {switch} is {state}@for",
    "{switch} [should be|must be|has to be|ought to be] {state}@for",
    "[I want|I need|I would like] {switch} {state}@for",
    "[have|get] {switch} [turned |switched |]{state}@for",
    "set [the switch|the toggle|the option] {switch} to {state}@for",
    "change {switch} [to|so that it is] {state}@for",
)
MANY: Mapping[str, tuple[str, ...]] = {
    "create": (
        f"{_MAKE} [a|a new|one more|another] {{record}} [with|that has|having] {{fields}}",
        f"{_MAKE} [a|a new] {{record}} : {{fields}}",
        "new {record} [with|:] {fields}",
        "{add} [with|using|and give it] {fields}",
        "[there should be|I need|I want|we need] [a|a new|another] {record} with {fields}",
        "[write down|note down|fill in] a [new |]{record} [with|whose details are] {fields}",
        "with {fields} [add|create|make] a [new |]{record}",
        f"{_MAKE} [a|a new|one more|another] {{record}} [called|named|titled|labelled|known as]"
        " {title}{rest}",
        f"{_MAKE} the [new |]{{record}} {{title}}{{rest}}",
        "[a |]new {record} {title}{rest}",
        "[put|get|write] {title} [on the list|into the list|among the {record}s]{rest}",
        "[store|save|note down|take down] {title} as a [new |]{record}{rest}",
        "[there should be|we need|I need] a {record} [called|named|for] {title}{rest}",
        "{add} : {title}{rest}",
    ),
    "edit": (
        f"{_SET} the {{field}} of @it to {{value}}",
        f"for @it {_SET} [the |]{{field}} to {{value}}",
        "@it [should have|needs|gets] [the |]{field} {value}",
        "make {value} the [new |]{field} of @it",
        "{edit} @it [and|,] [set|change|put] [its |the |]{field} to {value}",
        "[give|assign] @it the [new |]{field} {value}",
        "replace the [present |old |]{field} of @it [with|by] {value}",
        "@it has [a new|another] {field} : {value}",
        "let the {field} of @it be {value}",
        "the {field} of @it [is now|should be|must be|has to be] {value}",
        "[enter|write|put] {value} [as|for] the {field} of @it",
        "[the wrong {field} is stored for|fix the {field} of] @it , it [is|should be] {value}",
    ),
    "classify": (
        "[make|set] @it [to |]{value}",
        "[move|switch|reclassify] @it to {value}",
        "[mark|file|label|classify] @it as {value}",
        "@it is {value} [now|from now on|instead]",
        "[sort|put] @it [under|into] {value}",
        "@it [should be|must be|becomes] {value}",
    ),
    "reschedule": (
        "[move|shift|reschedule|postpone] @it to {value}",
        "@it [will be|is now|should be|must be] [at|on] {value}",
        "[put|set] @it [to|at|on] {value}",
        "@it was moved to {value} , [update|correct|note] that",
    ),
    "edit2": (
        f"{_SET} the {{field}} of @it to {{value}} and [its |the |]{{field2}} to {{value2}}",
        "for @it set {field} to {value} and {field2} to {value2}",
        "@it [should have|gets|needs] {fields}",
        "{edit} @it : {fields}",
        "[update|correct|modify|revise] @it [with|to have|so that it has] {fields}",
        "the {field} of @it [is now|should be] {value} , [and |]its {field2} {value2}",
        "[give|assign] @it {fields}",
    ),
    "delete": (
        f"{_DROP} @it",
        "@it [can go|should go|must go|is no longer needed|is not needed any more]",
        "[I no longer need|I do not need|we no longer want] @it , {delete} it",
        "[find|look for|open] @it and [delete|remove|{delete}] it",
        "take @it [out|away|off the list]",
        "[make sure|see to it] that @it is [gone|deleted|removed]",
        "let @it [disappear|be deleted|be removed]",
    ),
    "toggle": _TOGGLE,
    "toggle_only": (
        "[turn|switch] {state} @it",
        "[turn|switch|set] @it {state}",
        "@it [should be|must be|has to be] {state}",
        "[I want|I need|I would like] @it {state}",
        "[make sure|see to it] that @it is {state}",
    ),
    "mark": (
        "[mark|flag|set|label] @it as {switch}",
        "@it is {switch} [now|]",
        "[note|store|remember] that @it is {switch}",
        "[make|declare] @it {switch}",
        "@it [should be|must be|has been] {switch}",
    ),
    "unmark": (
        "[mark|flag|set|label] @it as not {switch}",
        "@it is [not {switch} any more|no longer {switch}|not {switch} after all]",
        "[note|store|remember] that @it is not {switch}",
        "[take|remove] [the mark |]{switch} [off|from] @it",
        "@it [should not be|must not be] {switch}",
    ),
    "setting": _TOGGLE,
    "check": (
        "[check|tick|tick off|check off|cross off|mark] {titles}",
        "mark {titles} as [{switch}|done|complete]",
        "{titles} [is|are] {switch} , [tick|check|mark] [it|them]",
        "set [the check box|the box|the tick] [of|for] {titles}",
        "put a [tick|check mark|mark] [at|on|next to|beside] {titles}",
        "[I have dealt with|I am done with] {titles} , [tick|check|cross] [it|them] off",
        "[make sure|ensure] that {titles} [is|are] [ticked|checked|marked]",
    ),
    "choice": (
        "[set|change|switch|put] [the |]{switch} to {option}",
        "[choose|select|pick|take] {option} [as|for] [the |]{switch}",
        "make {option} the {switch}",
        "[the |]{switch} [should be|must be|has to be] {option}",
        "use {option} [as|for] [the |]{switch}",
        "[I want|I prefer|I would like] {option} [as|for] [the |]{switch}",
        "[the |]{switch} : {option}",
        "let the {switch} be {option}",
    ),
    "read": (
        "?[what is|what's|which is] the {field} of @it",
        "?[which|what] {field} does @it have",
        f"{_TELL} the {{field}} of @it",
        f"{_TELL} [what|which] {{field}} @it has",
        "[I need|I want to know|I wonder about] the {field} of @it",
        "[answer|reply|respond] with the {field} of @it",
        "?do you know the {field} of @it",
        "?[what does @it have|what is stored for @it|what is entered for @it] as {field}",
        "the {field} of @it [, please|is what I need|is what I want to know]",
        "[read|see|open] @it and [tell me|answer with|report] [its|the] {field}",
    ),
    "state": (
        "?is {switch} on or off for @it",
        "?is {switch} [turned |switched |]on for @it , on or off",
        "[tell me|say|find out|check] whether {switch} is on or off for @it",
        "[answer|reply] with on or off : is {switch} [set|on] for @it",
        "?what state is {switch} in for @it , on or off",
    ),
    "show": (
        "[open|display|bring up|view|pull up] @it",
        "[find|look for|search for|locate] @it and [open|view] it",
        "[go to|navigate to|take me to|jump to] @it",
        "I [want|would like|need] to see @it",
        "[let me see|let me look at] @it",
        "open the [page|screen|details|entry] of @it",
    ),
    "open": (
        "[open|launch|run|bring up|load|fire up] [the |]{app}[ app|]",
        "[go|switch|navigate|take me|get] to [the |]{app}[ app|]",
        "I [want|need|would like] to use [the |]{app}[ app|]",
        "[start using|let me use|have a look at] {app}",
    ),
    "copy": (
        f"{_MAKE} [a|a new] {{record2}} [in {{app2}} |]with {{fields}} and with the {{field}} of"
        " @it{from_app} as {field2}",
        "[copy|take|transfer|bring] the {field} of @it{from_app} into the {field2} of a new"
        " {record2}{in_app2} with {fields}",
        "[look up|get|read|find] the {field} of @it{from_app} and [use|enter|write|put] it as"
        " [the |]{field2} of a [new |]{record2}{in_app2} with {fields}",
        "a new {record2}{in_app2} [should have|gets] {fields} and , as {field2} , the {field} of"
        " @it{from_app}",
        "{fields} [is for|belongs to] a new {record2}{in_app2} ; its {field2} is the {field} of"
        " @it{from_app}",
    ),
    "carry": (
        f"{_SET} the {{field2}} of {{record2}} {{title2}}{{in_app2}} to the {{field}} of"
        " @it{from_app}",
        "[copy|transfer|move|carry] the {field} of @it{from_app} [to|into] the {field2} of"
        " {record2} {title2}{in_app2}",
        "[look up|read|get|check] the {field} of @it{from_app} , then [enter|write|put] it as"
        " {field2} of the {record2} {title2}{in_app2}",
        "the {field2} of {record2} {title2}{in_app2} [should be|must be] the same as the {field}"
        " of @it{from_app}",
    ),
}
"""Kind -> its clauses. ``?`` begins a question."""

FEW: Mapping[str, tuple[str, ...]] = {
    "create": ("{add_verb} a {record} with {fields}", "create the {record} {title}{rest}"),
    "edit": (
        "{edit} the {record} {title} and set {field} to {value}",
        "change the {field} of the {record} {title} to {value}",
    ),
    "edit2": ("{edit} the {record} {title} and set {fields}",),
    "delete": ("{delete} the {record} {title}", "{delete} {title}"),
    "toggle": (
        "turn {state} {switch} for the {record} {title}",
        "switch {switch} {state} for {title}",
    ),
    "setting": ("turn {state} {switch}", "switch {switch} {state}"),
    "check": ("check {titles}", "tick off {titles}"),
    "choice": ("set the {switch} to {option}", "change the {switch} to {option}"),
    "read": ("what is the {field} of the {record} {title}", "answer with the {field} of {title}"),
    "state": ("answer with on or off : is {switch} on for {title}",),
    "show": ("open the {record} {title}", "view the {record} {title}"),
    "open": ("open the {app} app", "go to {app}"),
    "copy": (
        "copy the {field} of {record} {title}{from_app} into the {field2} of a new"
        " {record2}{in_app2} with {fields}",
    ),
    "carry": (
        "set the {field2} of the {record2} {title2}{in_app2} to the {field} of {title}{from_app}",
    ),
}
"""Kind -> plain clauses, as on the phone."""
