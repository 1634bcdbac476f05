"""Few-shot examples for requests: frames of train with their tools and gold calls.

They are drawn once by the seed, each from another dialogue and service, and are the same in every
request, with the original schema's words in every variant: only its own tools are reworded.
"""

import hashlib
import heapq
import json
from collections.abc import Iterable

from sgdx_t5x.corpus.dialogue import USER, Dialogue, Frame
from sgdx_t5x.corpus.schema import Schema
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.prompts.protocol import service_pairs
from sgdx_t5x.tools.calls import calls_text, state_calls
from sgdx_t5x.tools.definitions import openai_tool, service_tools

_START = "\n\nExamples, of other conversations with other functions:"


def examples_text(dialogues: Iterable[Dialogue], schema: Schema, number: int, seed: int) -> str:
  """Returns what follows the instruction of every request; "" for no examples.

  Args:
    dialogues: of the train split.
    schema: of the train split, the original one.
    number: number of examples.
    seed: seed of the draw.

  Raises:
    SgdxError: too few services and dialogues with calls to show.
  """
  if not number:
    return ""
  pairs = service_pairs(schema, schema)
  best: dict[str, tuple[str, Dialogue, int, Frame]] = {}  # service -> its frame of the lowest rank
  for dialogue in dialogues:
    rank = hashlib.blake2b(f"{seed} {dialogue.dialogue_id}".encode(), digest_size=8).hexdigest()
    for turn, frame in dialogue.user_frames():
      if state_calls(pairs[frame.service], frame.user_state):
        drawn = hashlib.blake2b(f"{rank} {turn}".encode(), digest_size=8).hexdigest()
        if frame.service not in best or drawn < best[frame.service][0]:
          best[frame.service] = drawn, dialogue, turn, frame
  chosen, seen = [], set()
  for found in heapq.nsmallest(len(best), best.values(), key=lambda x: x[0]):
    if found[1].dialogue_id not in seen:
      seen.add(found[1].dialogue_id)
      chosen.append(found)
  if len(chosen) < number:
    raise SgdxError(
      f"--shots {number}: train has frames with calls of only {len(chosen)} services",
      expected="examples that each come from a different service and dialogue",
      fix=f"pass --shots {len(chosen)} or fewer" if chosen else "omit --shots",
    )
  return "".join([_START, *(_example(schema, *found[1:]) for found in chosen[:number])])


def _example(schema: Schema, dialogue: Dialogue, turn: int, frame: Frame) -> str:
  pair = service_pairs(schema, schema)[frame.service]
  said = "\n".join(
    f"{'user' if one.speaker == USER else 'assistant'}: {one.utterance}"
    for one in dialogue.turns[: turn + 1]
  )
  tools = "\n".join(
    json.dumps(openai_tool(tool.for_states)["function"]) for tool in service_tools(pair)
  )
  calls = calls_text(state_calls(pair, frame.user_state))
  return f"\n\nFunctions:\n{tools}\nConversation:\n{said}\nCalls:\n{calls}"
