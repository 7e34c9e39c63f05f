"""What an agent is made of and how it is trained; the defaults are Table 5 of the CA2 paper."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from lanista.data.dataset import GoalDataset
from lanista.envs.errors import InputError

Algorithm = Literal["gcbc", "gcdt"]
CallStack = Literal["emb", "linear", "mhsa"]
GoalTokens = Literal["front", "every_step"]
Timestep = Literal["context", "episode"]
Precision = Literal["auto", "float32", "bfloat16"]


@dataclass(frozen=True)
class AgentConfig:
    """One agent's architecture.

    Raises:
        InputError: If fields do not fit, one line per problem.
    """

    algorithm: Algorithm = "gcdt"
    """``gcbc``: goal-conditioned behavioural cloning; ``gcdt``: decision transformer."""
    call_stack: CallStack | None = None
    """Call-stack encoder (equations 7, 8, 9); ``None`` is the paper's *Simple* agent."""
    dimension: int = 128
    """Width of tokens, and of goal and function embeddings."""
    context: int = 10
    """Steps that GC-DT remembers, K; the paper's L, 2L, 3L with L = 10. GC-BC sees one."""
    layers: int = 2
    """Transformer blocks of GC-DT."""
    heads: int = 2
    """Attention heads of GC-DT."""
    dropout: float = 0.1
    """Share dropped in GC-DT: token embeddings, attention weights, residual branches."""
    goal_tokens: GoalTokens = "front"
    """Goal once before the first step (equation 10), or in every step (Algorithm 1, "4K")."""
    timestep: Timestep = "context"
    """What the shared time embedding counts: the place in the window, or the episode's step."""
    max_timestep: int = 1024
    """Episode steps that have their own embedding under ``episode``; later ones share the last."""
    call_stack_heads: int = 2
    """Attention heads of the ``mhsa`` call-stack encoder."""
    image_channels: tuple[int, ...] = (32, 64, 64)
    """Output channels of the image encoder's convolutions."""
    image_kernels: tuple[int, ...] = (8, 4, 3)
    """Their square kernels, in pixels."""
    image_strides: tuple[int, ...] = (4, 2, 1)
    """Their strides, in pixels."""
    vector_hidden: int = 1024
    """Hidden units of the two-layer encoder of vector observations."""
    state_dimension: int = 512
    """Width of GC-BC's state representation."""
    mlp_hidden: tuple[int, ...] = (512, 512)
    """Hidden layers of GC-BC's head."""

    def __post_init__(self) -> None:
        if problems := list(self._problems()):
            raise InputError(*problems)

    @property
    def name(self) -> str:
        """Short name as in the paper's tables, such as ``GC-DT + CA2 (MHSA)``."""
        algorithm = {"gcbc": "GC-BC", "gcdt": "GC-DT"}[self.algorithm]
        encoder = {"emb": "Emb", "linear": "Linear", "mhsa": "MHSA", None: ""}[self.call_stack]
        return f"{algorithm} + CA2 ({encoder})" if encoder else f"{algorithm} Simple"

    @property
    def window(self) -> int:
        """Rows in one training example."""
        return self.context if self.algorithm == "gcdt" else 1

    def _problems(self) -> Iterator[str]:
        yield from _not_one_of("algorithm", self.algorithm, get_args(Algorithm))
        yield from _not_one_of("call_stack", self.call_stack, (None, *get_args(CallStack)))
        yield from _not_one_of("goal_tokens", self.goal_tokens, get_args(GoalTokens))
        yield from _not_one_of("timestep", self.timestep, get_args(Timestep))
        for field in ("dimension", "context", "layers", "heads", "max_timestep", "state_dimension"):
            yield from _below("agent", field, getattr(self, field), 1)
        for field in ("call_stack_heads", "vector_hidden"):
            yield from _below("agent", field, getattr(self, field), 1)
        for field in ("heads", "call_stack_heads"):
            heads = getattr(self, field)
            if heads >= 1 and self.dimension % heads:
                yield f"agent.{field} must divide dimension {self.dimension}; {heads} does not."
        if not 0 <= self.dropout < 1:
            yield f"agent.dropout must be at least 0 and below 1, not {self.dropout}."
        sizes = (self.image_channels, self.image_kernels, self.image_strides)
        if len({len(size) for size in sizes}) != 1 or not self.image_channels:
            yield (
                "agent.image_channels, image_kernels and image_strides must have equally many "
                f"entries, not {', '.join(str(len(size)) for size in sizes)}."
            )
        if any(value < 1 for size in (*sizes, self.mlp_hidden) for value in size):
            yield "agent.image_* and mlp_hidden hold whole numbers of at least 1."


@dataclass(frozen=True)
class TrainConfig:
    """How an agent is trained.

    Raises:
        InputError: If fields do not fit, one line per problem.
    """

    steps: int = 10_000
    """Gradient updates."""
    batch_size: int = 128
    """Windows per update (rows for GC-BC)."""
    learning_rate: float = 3e-4
    """Peak learning rate."""
    betas: tuple[float, float] = (0.9, 0.95)
    """AdamW's decay rates of the first and second moment."""
    weight_decay: float = 0.1
    """Decoupled decay of matrices and kernels; biases, norms and embeddings are left alone."""
    gradient_clip: float = 1.0
    """Largest gradient norm; longer gradients are scaled down to it."""
    warmup_share: float = 0.05
    """Share of the updates in which the learning rate rises from 0; then it falls as a cosine."""
    seed: int = 0
    """Seed of weights, batches and dropout."""
    device: str = "auto"
    """``cpu``, ``cuda``, ``cuda:1`` …; ``auto`` takes a GPU where there is one."""
    precision: Precision = "auto"
    """``auto`` computes in bfloat16 on a GPU that can and in float32 elsewhere."""
    threads: int | None = None
    """CPU threads; ``None`` leaves PyTorch's setting. Sums depend on it in their last bits."""
    metrics_every: int = 100
    """Updates between two reports; each is the mean since the one before."""
    validate_every: int = 500
    """Updates between two looks at held-out episodes."""
    validation_batches: int = 8
    """Batches of each such look, the same ones each time."""
    checkpoint_every: int = 1000
    """Updates between two checkpoints; the last update always writes one."""
    keep_checkpoints: int = 2
    """Latest checkpoints kept; older ones are removed."""

    def __post_init__(self) -> None:
        if problems := list(self._problems()):
            raise InputError(*problems)

    @property
    def warmup_steps(self) -> int:
        """Updates in which the learning rate rises."""
        return round(self.warmup_share * self.steps)

    def learning_rate_at(self, update: int) -> float:
        """Return the learning rate of an update, counted from 0: linear warm-up, then a cosine."""
        warmup = self.warmup_steps
        if update < warmup:
            return self.learning_rate * (update + 1) / warmup
        progress = (update - warmup) / max(1, self.steps - warmup)
        return self.learning_rate * 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))

    def _problems(self) -> Iterator[str]:
        for field in ("steps", "batch_size", "metrics_every", "validate_every"):
            yield from _below("train", field, getattr(self, field), 1)
        for field in ("validation_batches", "checkpoint_every", "keep_checkpoints"):
            yield from _below("train", field, getattr(self, field), 1)
        yield from _below("train", "seed", self.seed, 0)
        if self.threads is not None:
            yield from _below("train", "threads", self.threads, 1)
        for field in ("learning_rate", "gradient_clip"):
            value = getattr(self, field)
            if not (math.isfinite(value) and value > 0):
                yield f"train.{field} must be above 0, not {value}."
        if not (math.isfinite(self.weight_decay) and self.weight_decay >= 0):
            yield f"train.weight_decay must be at least 0, not {self.weight_decay}."
        if len(self.betas) != 2 or not all(0 <= beta < 1 for beta in self.betas):
            yield f"train.betas must be two numbers from 0 to below 1, not {self.betas}."
        if not 0 <= self.warmup_share <= 1:
            yield f"train.warmup_share must lie in 0 to 1, not {self.warmup_share}."
        yield from _not_one_of("precision", self.precision, get_args(Precision), "train")


@dataclass(frozen=True)
class Spaces:
    """What goes into an agent and comes out of it; with the config it fixes every weight's shape.

    Attributes:
        observation_shape: ``(height, width, channels)`` for images, ``(dims,)`` for vectors.
        observation_dtype: ``uint8`` for images, ``float32`` for vectors.
        actions: Number of discrete actions; 0 where an action is made of numbers.
        functions: Number of functions in the catalogue.
        goals: Number of goals.
        action_low: Lowest value of each number of an action, empty for discrete ones.
        action_high: Highest value of each.
    """

    observation_shape: tuple[int, ...]
    observation_dtype: str
    actions: int
    functions: int
    goals: int
    action_low: tuple[float, ...] = ()
    action_high: tuple[float, ...] = ()

    @property
    def continuous(self) -> bool:
        """Whether an action is made of numbers."""
        return bool(self.action_low)

    @classmethod
    def of(cls, dataset: GoalDataset) -> "Spaces":
        """Return the spaces of the game that a dataset was recorded from."""
        low, high = dataset.action_bounds or ((), ())
        return cls(
            observation_shape=dataset.observations.shape[1:],
            observation_dtype=dataset.observations.dtype.name,
            actions=dataset.action_count,
            functions=len(dataset.catalogue),
            goals=len(dataset.goals),
            action_low=low,
            action_high=high,
        )


def _not_one_of(
    field: str, value: object, known: tuple[object, ...], part: str = "agent"
) -> Iterator[str]:
    if value not in known:
        names = ", ".join("null" if name is None else str(name) for name in known)
        yield f"{part}.{field} must be one of {names}, not {value!r}."


def _below(part: str, field: str, value: int, least: int) -> Iterator[str]:
    if value < least:
        yield f"{part}.{field} must be at least {least}, not {value}."
