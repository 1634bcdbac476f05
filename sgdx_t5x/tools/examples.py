"""Few-shot examples for requests: frames of train with their tools and gold calls.

They are drawn once by the seed, each from another dialogue and service, and are the same in every
request, with the original schema's words in every variant: only its own tools are reworded.
"""

import hashlib
from collections.abc import Iterable

from sgdx_t5x.corpus.dialogue import Dialogue, Frame
from sgdx_t5x.corpus.schema import Schema
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.prompts.protocol import service_pairs
from sgdx_t5x.tools.calls import ROLES, calls_text, state_calls
from sgdx_t5x.tools.definitions import function_text, service_tools

_START = "\n\nExamples, of other conversations with other functions:"


def examples_text(dialogues: Iterable[Dialogue], schema: Schema, number: int, seed: int) -> str:
  """Returns what follows the instruction of every request; "" for no examples.

  Args: dialogues and schema of the train split; seed of the draw. Raises SgdxError: too few
  services and dialogues with calls to show.
  """
  if not number:
    return ""
  pairs = service_pairs(schema, schema)
  best: dict[str, tuple[str, Dialogue, int, Frame]] = {}  # service -> its frame of the lowest rank
  for dialogue in dialogues:
    rank = hashlib.blake2b(f"{seed} {dialogue.dialogue_id}".encode(), digest_size=8).hexdigest()
    for turn, frame in dialogue.user_frames():
      if state_calls(pairs[frame.service], frame.user_state):
        frame_rank = hashlib.blake2b(f"{rank} {turn}".encode(), digest_size=8).hexdigest()
        if frame.service not in best or frame_rank < best[frame.service][0]:
          best[frame.service] = frame_rank, dialogue, turn, frame
  # The rank, and not the order of the dialogues, decides which frame of two stays.
  examples, dialogue_ids = [], set()
  for candidate in sorted(best.values(), key=lambda x: x[0]):
    if candidate[1].dialogue_id not in dialogue_ids:
      dialogue_ids.add(candidate[1].dialogue_id)
      examples.append(candidate)
  if len(examples) < number:
    raise SgdxError(
      f"--shots {number}: train has frames with calls of only {len(examples)} services",
      expected="examples that each come from a different service and dialogue",
      fix=f"pass --shots {len(examples)} or fewer" if examples else "omit --shots",
    )
  return "".join([_START, *(_example(schema, *candidate[1:]) for candidate in examples[:number])])


def _example(schema: Schema, dialogue: Dialogue, turn: int, frame: Frame) -> str:
  pair = service_pairs(schema, schema)[frame.service]
  turns = dialogue.turns[: turn + 1]
  conversation = "\n".join(f"{ROLES[spoken.speaker]}: {spoken.utterance}" for spoken in turns)
  tools = "\n".join(map(function_text, service_tools(pair)))
  calls = calls_text(state_calls(pair, frame.user_state))
  return f"\n\nFunctions:\n{tools}\nConversation:\n{conversation}\nCalls:\n{calls}"
