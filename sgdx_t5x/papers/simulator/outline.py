"""Dialogue outlines, before any wording: the acts of two agents who take turns.

After the SGD paper (section 3.2): the user has a scenario and a goal, the system has the
services, and neither sees the other's. What both know from the dialogue is `CommonGround`.
"""

import random
from collections.abc import Mapping, Sequence

from sgdx_t5x.corpus.dialogue import SYSTEM, USER
from sgdx_t5x.papers.simulator.acts import Act, CommonGround, TurnOutline
from sgdx_t5x.papers.simulator.backend import Backend
from sgdx_t5x.papers.simulator.scenarios import Scenario
from sgdx_t5x.papers.simulator.system import System
from sgdx_t5x.papers.simulator.transitions import Transitions
from sgdx_t5x.papers.simulator.user import ENOUGH, User

MAX_TURNS = 100  # only reached with transitions that never lead to a goodbye


def outline(
  scenario: Scenario, backends: Mapping[str, Backend], transitions: Transitions, rng: random.Random
) -> list[TurnOutline]:
  """Draws the acts of one dialogue.

  Args:
    scenario: the user's scenario.
    backends: the services, by name.
    transitions: the automaton.
    rng: the only source of randomness.

  Returns:
    Alternating turns; the user begins, and the system says goodbye last.
  """
  ground = CommonGround()
  user = User(scenario, backends, transitions, rng, ground)
  system = System(backends, transitions, rng, ground)
  turns: list[TurnOutline] = []
  situation, heard = "START", ()
  while situation != "GOODBYE":
    if len(turns) >= MAX_TURNS - 2:
      situation = ENOUGH
    frames = user.turn(situation, heard)
    turns.append(TurnOutline(USER, frames))
    frame = system.turn(frames)
    turns.append(TurnOutline(SYSTEM, (frame,)))
    heard = frame.acts
    situation = _situation(heard, situation)
  return turns


def _situation(heard: Sequence[Act], before: str) -> str:
  """Returns what the user responds to; unchanged if the system only answered a question."""
  acts = {act.act for act in heard}
  if "NOTIFY_FAILURE" in acts:
    return "ALTERNATIVE" if "OFFER" in acts else "NOTIFY_FAILURE"
  for act in ("GOODBYE", "NOTIFY_SUCCESS", "REQ_MORE", "OFFER_INTENT", "CONFIRM", "OFFER"):
    if act in acts:
      return act
  return "REQUEST" if "REQUEST" in acts else before
