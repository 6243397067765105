"""A graph of one's own, from plain functions: no model, no torch.

python demos/custom_graph.py
"""

from swarm_ui import Action, CollabGraph
from swarm_ui.nodes import MajorityVote, function_node


@function_node
def planner(inbox, context):
    return f"to {context.observation.goal}, open the right app first"


def voter(name, app):
    opens = Action(action_type="open_app", app_name=app)
    return function_node(id=name)(lambda inbox, context: opens)


voters = [voter("ada", "Contacts"), voter("grace", "Contacts"), voter("alan", "Notes")]
team = CollabGraph([planner]) >> voters >> MajorityVote()

trace = team.run_sync("add a contact")
print(trace.message("planner:0").content)
print(trace.action, trace.ballot)
