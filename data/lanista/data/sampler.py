"""Goals in hindsight: which function a row's action may be said to have been on its way to.

A goal of row t is a member of G that an action at row t or later of the same trajectory caused to
be called (CA2 sections 3 and 6, after goal-conditioned behavioural cloning). It is drawn uniformly
over the *distinct* such goals, so that a function called on every step is no likelier than one
called once; rows after which no goal is reached are not drawn.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lanista.data.dataset import GoalDataset
from lanista.envs.errors import InputError


@dataclass(frozen=True)
class Windows:
    """A batch of windows of consecutive rows, each with one goal.

    Attributes:
        rows: ``int64[batch, context]``. A window's rows come first, in order; what is left when
            it starts at its episode's start repeats its last row and is not valid.
        valid: ``bool[batch, context]``.
        goals: ``int64[batch]``, positions in ``GoalDataset.goals``.
    """

    rows: NDArray[np.int64]
    valid: NDArray[np.bool_]
    goals: NDArray[np.int64]


class HindsightSampler:
    """Draws windows that end at a row, with a goal reached at or after that row.

    The end row is drawn uniformly over all rows that have a goal left to reach, and the goal then
    uniformly over those reached at the end row or later: it is a hindsight goal of every row in
    the window, and it stays fixed. The window holds the ``context`` rows up to the end row, fewer
    at the start of an episode, as an agent's memory does when it plays.

    A goal is left to reach at row t exactly if its last call in the episode is caused at t or
    later. So with each episode's goals sorted by their last call, latest first, the choices of
    row t are a prefix of that list: one length per row and ``E × G`` numbers are all the state
    there is, and a draw is two look-ups.
    """

    def __init__(self, dataset: GoalDataset, context: int = 1) -> None:
        """Prepare the look-up tables.

        Args:
            dataset: What to draw from.
            context: Rows per window, at least 1.

        Raises:
            InputError: If no row of the dataset has a goal left to reach.
        """
        if context < 1:
            raise InputError(f"A window has at least 1 row, not {context}.")
        self.dataset = dataset
        self.context = context
        last = last_calls(dataset)
        self._ranked = np.argsort(-last, axis=1, kind="stable")
        ranked_last = np.take_along_axis(last, self._ranked, axis=1)
        self.choices = np.zeros(len(dataset), dtype=np.int64)
        """Number of goals left to reach at each row, ``int64[N]``."""
        for episode, (start, stop) in enumerate(
            zip(dataset.episode_offsets[:-1], dataset.episode_offsets[1:], strict=True)
        ):
            rising = ranked_last[episode, ::-1]
            steps = np.arange(stop - start)
            self.choices[start:stop] = len(rising) - np.searchsorted(rising, steps, side="left")
        self.eligible = np.flatnonzero(self.choices)
        """Rows that have a goal left to reach, ``int64[eligible]``."""
        if not self.eligible.size:
            raise InputError(
                f"None of the {len(dataset.goals)} goals is reached in the "
                f"{len(dataset.episode_ids)} episodes; choose goals that the recording reaches."
            )

    def goals_left(self, row: int) -> NDArray[np.int64]:
        """Return the goals (positions in ``dataset.goals``) reached at ``row`` or later."""
        return self._ranked[self.dataset.episode_of_row[row], : self.choices[row]]

    def sample(self, rng: np.random.Generator, batch: int) -> Windows:
        """Draw ``batch`` windows; the same generator state gives the same windows."""
        ends = self.eligible[rng.integers(0, len(self.eligible), size=batch)]
        picks = rng.integers(0, self.choices[ends])
        goals = self._ranked[self.dataset.episode_of_row[ends], picks]
        lengths = np.minimum(self.dataset.step_of_row[ends] + 1, self.context)
        place = np.arange(self.context)
        first = ends - lengths + 1
        rows = np.minimum(first[:, None] + place, ends[:, None])
        return Windows(rows=rows, valid=place < lengths[:, None], goals=goals)


def last_calls(dataset: GoalDataset) -> NDArray[np.int64]:
    """Return the last step of each episode whose action caused a call of each goal.

    Returns:
        ``int64[E, G]``, -1 where the goal is never reached; calls made by reset do not count.
    """
    goal_of_function = np.full(len(dataset.catalogue), -1, dtype=np.int64)
    goal_of_function[dataset.goals] = np.arange(len(dataset.goals))
    frames = np.repeat(np.arange(len(dataset.bag_offsets) - 1), np.diff(dataset.bag_offsets))
    goals = goal_of_function[dataset.bag_ids]
    frames, goals = frames[goals >= 0], goals[goals >= 0]
    episodes = len(dataset.episode_ids)
    first_frames = dataset.episode_offsets[:-1] + np.arange(episodes)
    episode = np.searchsorted(first_frames, frames, side="right") - 1
    # The frame after row t holds what row t caused; reset's frame gets step -1.
    steps = frames - first_frames[episode] - 1
    last = np.full((episodes, len(dataset.goals)), -1, dtype=np.int64)
    np.maximum.at(last, (episode, goals), steps)
    return last
