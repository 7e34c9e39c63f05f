"""What a bag saves over one token per call: time and peak memory of the call-stack encoders.

One measurement is a forward and a backward pass over a batch of traces of 600 calls each, drawn so
that a step calls about 50 distinct functions of 128, as Crafter's game logic does. The plain way
embeds every call and runs equation 7, 8 or 9 over all 600 tokens; the bag gives the same numbers
(``tests/agents/networks/test_call_stack.py``).

Time is the median of interleaved rounds. Peak memory is the most bytes in tensors at once during
the two passes, beyond what was there before: a dispatch mode adds a storage when an operation makes
it and takes it off when it is freed. Scratch space inside one kernel is not seen, which favours the
plain way: its attention never shows its 600 x 600 matrix.
"""

import statistics
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from lanista.agents.config import AgentConfig
from lanista.agents.networks.call_stack import TraceBags, make_call_stack_encoder
from lanista.envs.tracing.trace import CallTrace

CALLS, FUNCTIONS, DISTINCT, BATCH, ROUNDS = 600, 128, 50, 64, 5


@dataclass(frozen=True)
class Comparison:
    """One encoder, both ways.

    Attributes:
        encoder: Its name.
        token_seconds: Median time of one token per call.
        bag_seconds: Median time of bags.
        token_bytes: Peak memory of one token per call.
        bag_bytes: Peak memory of bags.
    """

    encoder: str
    token_seconds: float
    bag_seconds: float
    token_bytes: int
    bag_bytes: int

    @property
    def time_ratio(self) -> float:
        """How many times longer one token per call takes."""
        return self.token_seconds / self.bag_seconds

    @property
    def memory_ratio(self) -> float:
        """How many times more memory one token per call takes."""
        return self.token_bytes / self.bag_bytes


def draw_traces(rng: np.random.Generator, batch: int) -> list[np.ndarray[Any, Any]]:
    """Draw traces whose calls are spread over their functions as unevenly as a game's."""
    traces = []
    for _ in range(batch):
        functions = rng.choice(FUNCTIONS, DISTINCT + int(rng.integers(-10, 11)), replace=False)
        weights = 1 / np.arange(1, len(functions) + 1)
        drawn = rng.choice(functions, CALLS - len(functions), p=weights / weights.sum())
        traces.append(rng.permutation(np.concatenate([functions, drawn])))
    return traces


def make_bags(traces: list[np.ndarray[Any, Any]]) -> TraceBags:
    bags = [CallTrace(trace).bag() for trace in traces]
    width = max(len(ids) for ids, _ in bags)
    ids = np.zeros((len(bags), width), np.int64)
    counts = np.zeros((len(bags), width), np.float32)
    for row, (distinct, times) in enumerate(bags):
        ids[row, : len(distinct)], counts[row, : len(distinct)] = distinct, times
    return TraceBags(torch.from_numpy(ids), torch.from_numpy(counts))


def per_token(encoder: Any, name: str, calls: Tensor) -> Tensor:
    """Run equation 7, 8 or 9 as printed, over every call."""
    tokens = encoder.embedding(calls)
    if name == "emb":
        return tokens.sum(1)  # type: ignore[no-any-return]
    if name == "linear":
        return encoder.projection(tokens).sum(1)  # type: ignore[no-any-return]
    query, key, value = (
        layer(tokens).unflatten(-1, (encoder.heads, -1)).transpose(1, 2)
        for layer in (encoder.query, encoder.key, encoder.value)
    )
    attended = nn.functional.scaled_dot_product_attention(query, key, value)
    return encoder.output(attended.transpose(1, 2).flatten(2)).sum(1)  # type: ignore[no-any-return]


class HeldMemory(TorchDispatchMode):
    """Counts the bytes of every storage that an operation makes, until it is freed.

    Attributes:
        held: Bytes of the storages made since the start that are still alive.
        peak: The largest value of ``held`` so far.
    """

    def __init__(self) -> None:
        super().__init__()
        self.held = 0
        self.peak = 0
        self._alive: set[int] = set()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        given = {
            leaf.untyped_storage().data_ptr()
            for leaf in tree_leaves((args, kwargs))
            if isinstance(leaf, Tensor)
        }
        for leaf in tree_leaves(result):
            if isinstance(leaf, Tensor):
                self._add(leaf.untyped_storage(), given)
        return result

    def _add(self, storage: torch.UntypedStorage, given: set[int]) -> None:
        address, size = storage.data_ptr(), storage.nbytes()
        if not size or address in given or address in self._alive:
            return
        self._alive.add(address)
        self.held += size
        self.peak = max(self.peak, self.held)
        weakref.finalize(storage, self._free, address, size)

    def _free(self, address: int, size: int) -> None:
        self._alive.discard(address)
        self.held -= size


def peak_bytes(work: Callable[[], None]) -> int:
    """Return the most bytes that ``work`` holds at once, beyond what was held before."""
    work()  # buffers that live on, such as gradients, are there already
    with HeldMemory() as memory:
        work()
    return memory.peak


def compare(name: Any, batch: int = BATCH, rounds: int = ROUNDS) -> Comparison:
    torch.manual_seed(0)
    encoder = make_call_stack_encoder(AgentConfig(call_stack=name), FUNCTIONS)
    assert encoder is not None
    traces = draw_traces(np.random.default_rng(0), batch)
    calls = torch.from_numpy(np.stack(traces)).long()
    bags = make_bags(traces)

    def run(encode: Callable[[], Tensor]) -> None:
        encoder.zero_grad(set_to_none=False)
        encode().square().mean().backward()  # type: ignore[no-untyped-call]

    ways: dict[str, Callable[[], None]] = {
        "token": lambda: run(lambda: per_token(encoder, name, calls)),
        "bag": lambda: run(lambda: encoder(bags)),
    }
    memory = {way: peak_bytes(work) for way, work in ways.items()}
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way, work in ways.items():
            started = time.perf_counter()
            work()
            seconds[way].append(time.perf_counter() - started)
    medians = {way: statistics.median(values) for way, values in seconds.items()}
    return Comparison(name, medians["token"], medians["bag"], memory["token"], memory["bag"])


def run(batch: int = BATCH, rounds: int = ROUNDS) -> list[Comparison]:
    """Compare the three encoders on one thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return [compare(name, batch, rounds) for name in ("emb", "linear", "mhsa")]
    finally:
        torch.set_num_threads(before)


def main() -> None:
    print(f"Call stacks of {CALLS} calls, ~{DISTINCT} distinct of {FUNCTIONS}; batch {BATCH}")
    print("encoder    per call        bag     ratio   per call       bag     ratio")
    for found in run():
        print(
            f"{found.encoder:8}"
            f"{found.token_seconds * 1e3:8.1f} ms {found.bag_seconds * 1e3:7.2f} ms"
            f" {found.time_ratio:7.1f}x"
            f"{found.token_bytes / 2**20:7.1f} MiB {found.bag_bytes / 2**20:6.2f} MiB"
            f" {found.memory_ratio:7.1f}x"
        )


if __name__ == "__main__":
    main()
