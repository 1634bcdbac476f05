"""What is done in a dialogue, before any words: the acts of two agents who take turns.

After the SGD paper (section 3.2): the user has a scenario and a goal, the system has the
services, and neither sees the other's. What both know, because it was said, is `CommonGround`.
"""

import random
from collections.abc import Mapping, Sequence

from sgdx_t5x.data.dialogue import SYSTEM, USER
from sgdx_t5x.simulator.acts import Act, CommonGround, TurnOutline
from sgdx_t5x.simulator.backend import Backend
from sgdx_t5x.simulator.scenarios import Scenario
from sgdx_t5x.simulator.system import System
from sgdx_t5x.simulator.transitions import Transitions
from sgdx_t5x.simulator.user import ENOUGH, User

MAX_TURNS = 100  # only transitions that never lead to a goodbye get so far


def outline(
  scenario: Scenario, backends: Mapping[str, Backend], transitions: Transitions, rng: random.Random
) -> list[TurnOutline]:
  """Draws the acts of one dialogue.

  Args:
    scenario: what the user has in mind.
    backends: the services, by name.
    transitions: the automaton.
    rng: the only source of chance.

  Returns:
    Turns that alternate, the user's first; the system says goodbye last.
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
  """What a user answers to; a mere answer to a question leaves it as it was."""
  acts = {act.act for act in heard}
  if "NOTIFY_FAILURE" in acts:
    return "ALTERNATIVE" if "OFFER" in acts else "NOTIFY_FAILURE"
  for act in ("GOODBYE", "NOTIFY_SUCCESS", "REQ_MORE", "OFFER_INTENT", "CONFIRM", "OFFER"):
    if act in acts:
      return act
  return "REQUEST" if "REQUEST" in acts else before
