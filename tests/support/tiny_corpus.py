"""A corpus small enough to score by hand, in the official layout, for tests of scoring.

Test split: Banks_1 (also in train: seen) and Homes_2 (unseen), three dialogues in two files,
six user frames. v3 renames Banks_1's `kind` to a name that another slot has in the original.
"""

import json
import pathlib

from sgdx_t5x.corpus import variants
from sgdx_t5x.corpus.manifest import Manifest

VARIANTS = ("v1", "v2", "v3", "v4", "v5")
# service -> (slot, categorical, possible values); `balance` is only a result, not tracked.
SLOTS = {
  "Banks_1": [
    ("kind", True, ["Checking", "Savings"]),
    ("to", False, []),
    ("amount", False, []),
    ("balance", False, []),
  ],
  "Homes_2": [("intent", True, ["rent", "buy"]), ("area", False, [])],
  "Shops_1": [("item", False, [])],
}
UNTRACKED = {"balance"}
# dialogue id -> user turns -> service -> gold state
GOLD = {
  "1_00000": [
    {"Banks_1": {}},
    {"Banks_1": {"kind": ["Checking"], "to": ["Anna Lee", "Anna"]}},
    {"Banks_1": {"kind": ["Checking"], "to": ["Anna Lee", "Anna"], "amount": ["$50"]}},
  ],
  "1_00001": [{"Banks_1": {"kind": ["Savings"]}, "Homes_2": {"intent": ["rent"]}}],
  "2_00000": [{"Homes_2": {"intent": ["dontcare"], "area": ["Soho | West"]}}],
}
FILES = (("1_00000", "1_00001"), ("2_00000",))


def service_name(service: str, variant: str) -> str:
  return service if variant == "original" else service + variant[1:]


def slot_name(service: str, slot: str, variant: str) -> str:
  if variant == "original":
    return slot
  if (variant, service, slot) == ("v3", "Banks_1", "kind"):
    return "amount"  # collides with another original name, as in SGD-X's v3 Events_1
  return f"{slot}_{variant}"


def schema(services: list[str], variant: str) -> list[dict]:
  result = []
  for service in services:
    slots = [
      {
        "name": slot_name(service, name, variant),
        "description": f"{name} said like {variant}",
        "is_categorical": categorical,
        "possible_values": values,
      }
      for name, categorical, values in SLOTS[service]
    ]
    tracked = [slot_name(service, s, variant) for s, _, _ in SLOTS[service] if s not in UNTRACKED]
    result.append(
      {
        "service_name": service_name(service, variant),
        "description": f"{service} said like {variant}",
        "slots": slots,
        "intents": [
          {
            "name": "Do",
            "description": "do it",
            "is_transactional": True,
            "required_slots": tracked[:1],
            "optional_slots": {name: "dontcare" for name in tracked[1:]},
            "result_slots": [slot["name"] for slot in slots],
          }
        ],
      }
    )
  return result


def dialogue(dialogue_id: str, states: list[dict], variant: str = "original") -> dict:
  """A DSTC8 dialogue whose user frames hold these states (given with original names)."""
  turns = []
  for i, frames in enumerate(states):
    turns.append(
      {
        "speaker": "USER",
        "utterance": f"user turn {i} of {dialogue_id}",
        "frames": [
          {
            "service": service_name(service, variant),
            "slots": [],
            "actions": [],
            "state": {
              "active_intent": "Do",
              "requested_slots": [],
              "slot_values": {slot_name(service, s, variant): v for s, v in values.items()},
            },
          }
          for service, values in frames.items()
        ],
      }
    )
    turns.append({"speaker": "SYSTEM", "utterance": f"answer {i}", "frames": []})
  services = sorted({service_name(s, variant) for frames in states for s in frames})
  return {"dialogue_id": dialogue_id, "services": services, "turns": turns}


def write_json(path: pathlib.Path, data) -> pathlib.Path:
  path.parent.mkdir(parents=True, exist_ok=True)
  path.write_text(json.dumps(data))
  return path


def write_corpus(root: pathlib.Path) -> pathlib.Path:
  for variant in ("original", *VARIANTS):
    base = root if variant == "original" else root / "sgd_x" / "data" / variant
    write_json(base / "train" / "schema.json", schema(["Banks_1", "Shops_1"], variant))
    write_json(base / "test" / "schema.json", schema(["Banks_1", "Homes_2"], variant))
  for number, ids in enumerate(FILES, start=1):
    name = root / "test" / f"dialogues_{number:03d}.json"
    write_json(name, [dialogue(i, GOLD[i]) for i in ids])
  return root


def write_dialogues(folder: pathlib.Path, states: dict, variant: str = "original") -> pathlib.Path:
  """Writes predictions (original names, {dialogue id: GOLD-like}) as DSTC8 dialogues."""
  data = [dialogue(i, turns, variant) for i, turns in states.items()]
  write_json(folder / "dialogues_all.json", data)
  return folder


def example_rows(states: dict, variant: str, split: str = "test") -> list[dict]:
  """Predictions as rows of t5x.infer, one per tracked slot."""
  rows = []
  for dialogue_id, turns in states.items():
    for i, frames in enumerate(turns):
      for service, values in frames.items():
        for slot, _, _ in SLOTS[service]:
          if slot not in UNTRACKED:
            key = f"{variant}/{split}/{dialogue_id}-{2 * i:03d}-{service}/{slot}"
            text = values[slot][0] if slot in values else "none"
            row = {"inputs": {"example_id_pretokenized": key}, "prediction": text}
            rows.append(row)
  return rows


def write_rows(path: pathlib.Path, rows: list[dict]) -> pathlib.Path:
  path.parent.mkdir(parents=True, exist_ok=True)
  path.write_text("".join(json.dumps(row) + "\n" for row in rows))
  return path


def mark_perturbed(root: pathlib.Path, monkeypatch, kind: str, split: str = "test", **more):
  """Gives a split the manifest of a perturbed corpus, of a kind that need not be any annex's.

  Args:
    root: folder of the corpus.
    monkeypatch: pytest's fixture.
    kind: of the perturbation.
    split: the split.
    more: further keys of the manifest.

  Returns:
    The corpus' folder.
  """
  monkeypatch.setattr(variants, "PERTURBATIONS", (*variants.PERTURBATIONS, kind))
  files = sorted((root / split).glob("dialogues_*.json"))
  number = sum(len(json.loads(file.read_text())) for file in files)
  manifest = Manifest(kind=kind, options={}, seed=0, split=split, of={"corpus": root.name},
                      counts={"dialogues": number}, files={}, complete=True, version="",
                      **more)  # fmt: skip
  (root / split / "perturbation.json").write_text(manifest.text())
  return root
