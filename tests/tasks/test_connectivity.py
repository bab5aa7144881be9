"""Connectivity, against networkx, and against what a reader who does not follow edges could use."""

from functools import partial
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from deepwide.errors import DeepwideError
from deepwide.tasks import Batch, make_task
from deepwide.tasks.connectivity import Connectivity


def graph_of(task: Connectivity, tokens: list[int]) -> tuple[int, list[tuple[int, int]], nx.Graph]:
    """The marked vertex, the edges in their order, and the graph, read from the tokens by their description."""
    edge_of = {v * (v - 1) // 2 + u: (u, v) for v in range(task.vertices) for u in range(v)}
    edges = [edge_of[token] for token in tokens[1:] if token in edge_of]
    return tokens[0] - task.edges, edges, nx.Graph(edges)


@pytest.mark.parametrize(("vertices", "largest"), [(4, 1), (18, 8), (25, 5)])
def test_graphs_and_answers_are_what_networkx_says(vertices: int, largest: int) -> None:
    task = Connectivity(vertices=vertices, largest=largest)
    batch = task.batch(0, 150, 2)
    assert batch.mask_BT is not None
    assert batch.padding_BT is not None
    distances = task.distances(batch.tokens_BT.numpy())
    seen = set()
    for row, tokens in enumerate(batch.tokens_BT.tolist()):
        mark, edges, graph = graph_of(task, tokens)
        assert batch.padding_BT[row].tolist() == [True] * (1 + len(edges)) + [False] * (task.context - 1 - len(edges))
        components = [graph.subgraph(nodes) for nodes in nx.connected_components(graph)]
        diameters = {nx.diameter(component) for component in components}
        assert len(diameters) == 1
        (diameter,) = diameters
        seen.add(diameter)
        assert len(components) == vertices // (diameter + 1)
        assert nx.eccentricity(graph.subgraph(nx.node_connected_component(graph, mark)), mark) == diameter
        reachable = nx.single_source_shortest_path_length(graph, mark)
        mask, scored = batch.mask_BT[row].tolist(), []
        for place, (u, v) in enumerate(edges, 1):
            assert distances[row, place - 1] == min(reachable.get(u, -1), reachable.get(v, -1))
            if mask[place]:
                assert batch.targets[row, place] == task.no + (u in reachable)
                scored.append(u in reachable)
            else:
                assert u not in reachable
        assert mask[0] is False
        assert (sum(scored), len(scored)) == (diameter, 2 * diameter), "as many yes as no"
    assert seen == set(range(1, largest + 1))


def test_distances_are_right_on_graphs_that_are_no_paths() -> None:
    task = Connectivity(vertices=18)
    rng = np.random.default_rng(1)
    tokens = np.hstack([task.edges + rng.integers(0, 18, (60, 1)), rng.integers(0, task.edges, (60, 16))])
    for row, distances in zip(tokens.tolist(), task.distances(tokens).tolist(), strict=True):
        mark, edges, graph = graph_of(task, row)
        graph.add_node(mark)
        reachable = nx.single_source_shortest_path_length(graph, mark)
        assert distances == [min(reachable.get(u, -1), reachable.get(v, -1)) for u, v in edges]


def features(task: Connectivity, batch: Batch) -> tuple[np.ndarray, np.ndarray]:
    """What one can count without following edges: degrees, neighbours, place, numbers of edges and vertices."""
    assert batch.mask_BT is not None
    rows, answers = [], []
    for tokens, targets, mask in zip(
        batch.tokens_BT.tolist(), batch.targets.tolist(), batch.mask_BT.tolist(), strict=True
    ):
        mark, edges, graph = graph_of(task, tokens)
        for place, (u, v) in enumerate(edges, 1):
            if mask[place] and mark not in (u, v):  # an edge at the mark needs no step
                degrees = sorted((graph.degree(u), graph.degree(v)))
                size = [len(edges), len(graph), u, v, mark, abs(u - mark), abs(v - mark), place]
                rows.append([1.0, *degrees, *size, float(graph.degree(mark))])
                answers.append(targets[place] == task.no + 1)
    return np.array(rows), np.array(answers)


def test_nothing_that_can_be_counted_gives_the_answer_away() -> None:
    """Logistic regression on degrees, labels and sizes does no better than the larger class on graphs it never saw."""
    task = Connectivity()
    (x, y), (new_x, new_y) = (features(task, task.batch(first, 1500, 0)) for first in (0, 10_000))
    mean, spread = x.mean(0), x.std(0) + 1e-9
    x, new_x = (np.hstack([np.ones((len(each), 1)), (each - mean) / spread]) for each in (x, new_x))

    def loss(w: np.ndarray) -> float:
        return float(np.logaddexp(0, np.where(y, -1, 1) * (x @ w)).mean() + 1e-4 * (w @ w))

    w = minimize(loss, np.zeros(x.shape[1])).x
    accuracy = ((new_x @ w > 0) == new_y).mean()
    majority = max(new_y.mean(), 1 - new_y.mean())
    assert accuracy < majority + 0.03


@pytest.mark.parametrize("steps", [0, 1, 3, 7])
def test_who_looks_fewer_steps_than_the_diameter_has_one_half(steps: int) -> None:
    task = Connectivity()
    sums: dict[str, float] = {}
    for batch in task.evaluation(400, 100):
        distance = task.distances(batch.tokens_BT.numpy())
        near = np.hstack([np.zeros((len(batch), 1), dtype=bool), (distance >= 0) & (distance < steps)])
        answer = torch.from_numpy(task.no + near.astype(np.int64))
        logits = torch.nn.functional.one_hot(answer, task.vocab).float()
        for name, value in task.measure(batch, 0.5, partial(torch.clone, logits)).items():
            sums[name] = sums.get(name, 0) + value
    metrics = task.metrics(sums)
    assert [metrics[f"accuracy_{d}"] for d in range(1, 9)] == [1.0 if d <= steps else 0.5 for d in range(1, 9)]


def test_edges_stand_in_random_order() -> None:
    """Of neighbours in the list, few share a vertex: no more than of any two edges."""
    task = Connectivity()
    shared, pairs = 0, 0
    for tokens in task.batch(0, 300, 1).tokens_BT.tolist():
        _, edges, _ = graph_of(task, tokens)
        shared += sum(bool(set(one) & set(other)) for one, other in pairwise(edges))
        pairs += len(edges) - 1
    assert 0.03 < shared / pairs < 0.15


def test_too_few_vertices_cost_a_sentence() -> None:
    with pytest.raises(DeepwideError, match=r"vertices \(9\) must be at least"):
        make_task("connectivity", {"vertices": 9, "largest": 4})


def test_examples_never_change() -> None:
    """A change here changes the numbers of runs: raise the task's version."""
    batch = Connectivity(vertices=6, largest=2).batch(7, 1, seed=3)
    assert (batch.tokens_BT[0].tolist(), batch.targets[0].tolist()) == FIRST


FIRST = ([20, 0, 9, 12, 21], [0, 21, 21, 22, 21])
