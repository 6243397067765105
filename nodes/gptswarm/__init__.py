"""GPTSwarm (``gptswarm==0.1.0``, arXiv 2402.16823) in our graphs.

    operation = GPTSwarmNode(DirectAnswer("gaia", "gpt-4"))        # one operation as a node
    agent = GPTSwarmGraph(TOT("gaia", "gpt-4"))                    # an agent, run by its own code
    team = import_graph(TOT("gaia", "gpt-4"), model=model)         # by our executor and our model
    found = import_swarm(Swarm(["IO", "COT"], "gaia", edge_optimize=True))

    edges = EdgeDistribution.from_probabilities(found.potential)
    team = found.with_edges(edges.sample(1, generator)[0].edges)

What is kept: prompts, the order in which an operation reads what it hears, what it is given as
input, and so the answers. What is mended:

- Every call works on a private copy with a memory of its own, so one graph serves any number of
  runs at the same time; the process-wide ``GlobalMemory`` is neither read nor written.
- What GPTSwarm prints and swallows is a failure of that node.
- Operations that block run beside the event loop, not in it.
- Operations of one graph run as soon as what they hear is there, not one after another.

What is left, as it is in the package's own code:

- ``Cost`` is a total of the process, right as long as an operation does not ask a model with the
  blocking ``gen()``; GPTSwarm's OpenAI backend fails on models it has no price for. Give ``model=``
  to ask a model of ours instead and have usage counted per call.
- Objects that an operation holds (its language model, its prompts) are shared by all its calls; so
  is ``GlobalMemory`` for an operation that fetches it by itself.
- A decision by majority breaks ties with the process's ``random``, not with the run's seed.
"""

from swarm_ui.nodes.gptswarm.agent_graph import GPTSwarmGraph, import_graph
from swarm_ui.nodes.gptswarm.operation import GPTSwarmNode
from swarm_ui.nodes.gptswarm.swarm_import import ImportedSwarm, import_swarm

__all__ = ["GPTSwarmGraph", "GPTSwarmNode", "ImportedSwarm", "import_graph", "import_swarm"]
