"""Default words and value kinds, derived from a schema's names where none were written.

SGD's names are informative: `number_of_seats`, `has_live_music`, `FindRestaurants`. Slots are nouns
or begin with a verb, intents begin with a verb. If a name says nothing, its description is used.
"""

import itertools
import re

from sgdx_t5x.corpus.schema import DONTCARE, Intent, Slot
from sgdx_t5x.variants.wording import INTENT, SLOT, name_words

BOOLEAN, CATEGORY = "boolean", "category"  # kinds of slots whose values the schema lists


def _words(text: str) -> frozenset[str]:
  return frozenset(text.split())


_PEOPLE = _words(
  """passengers travelers travellers people persons guests riders adults children party group
  visitors attendees participants players"""
)
_CALLERS = _PEOPLE | _words("tickets seats rooms bags nights days hours")
# What the head of a name ("pickup date", "date of visit") says about the values.
_HEADS = {
  "date": "date day birthday deadline",
  "time": "time hour",
  "duration": "duration",
  "phone": "phone telephone mobile fax",
  "address": "address street",
  "price": """price fare cost costs fee amount rent total balance rate charge wage salary budget
    deposit bill""",
  "rating": "rating score",
  "number": """number year percent percentage temperature humidity precipitation speed age code
    length distance height weight""",
  "city": """city town village destination origin country state region district area neighborhood
    neighbourhood port harbor harbour location""",
  "station": "station airport terminal terminus stop pier",
  "style": "genre category subcategory cuisine type style kind specialty flavor flavour sport",
  "title": """album song movie film track book title event attraction museum venue theater theatre
    restaurant hotel property shop store company model""",
  "count": """count size quantity seats tickets rooms beds baths bags nights days hours minutes
    weeks stops transfers servings""",
  "person": """artist actor actors cast celebs author director doctor dentist stylist therapist
    recipient receiver sender contact teacher instructor tutor trainer coach guide driver host
    performer singer composer customer owner agent gardener patient friend person starring""",
}  # fmt: skip
_KIND_OF_HEAD: dict[str, str] = {}
for _kind, _heads in _HEADS.items():
  _KIND_OF_HEAD |= dict.fromkeys(_heads.split(), _kind)
_KIND_OF_HEAD |= dict.fromkeys(_PEOPLE, "count")

_COUNTED = re.compile(r"(?:number|num|no|count) (?:of )?(.+)|(.+) count")
_PER = re.compile(r" (?:per|of|for|in|at|to|where|from|that|which|who|whom|with|by)\b.*")
_NAME_OF = re.compile(r"(?:the )?(?:\w+ )?(?:name|title) (?:of|for) ")
_NAME = re.compile(r" (?:name|title)$")
_DETERMINER = r"(?:the|a|an|your|my|any|some) "

# First words of slot names that tell the role of a date, a time or a place.
_WAYS = {
  "departure": "leaving", "departing": "leaving", "leaving": "leaving", "depart": "leaving",
  "origin": "leaving", "arrival": "arriving", "return": "returning", "start": "starting",
  "end": "ending", "pickup": "picking up", "dropoff": "dropping off", "check in": "checking in",
  "check out": "checking out", "boarding": "boarding", "outbound departure": "flying out",
  "outbound arrival": "landing there", "inbound departure": "flying back",
  "inbound arrival": "landing back",
}  # fmt: skip
_FROM = frozenset({"from", "origin", "departure", "departing", "leaving", "starting", "start"})
_TO = frozenset({"to", "destination", "arrival", "ending", "end"})
_AT = {"date": "on", "time": "at", "city": "in", "station": "at", "address": "at"}
_BY = {"artist": "by", "author": "by", "director": "by", "performer": "by", "singer": "by",
       "composer": "by", "recipient": "for", "receiver": "for", "contact": "for",
       "starring": "starring"}  # fmt: skip

_HAVING = _words("has have with add include includes offers serves provides brings accepts takes")
_DOING = _words(
  "arrives leaves stops needs requires allows supports works delivers opens closes starts"
)
_VERBS = _words(
  """add adjust ask book borrow browse buy call cancel change check choose compare connect contact
  create delete discover enroll explore find get give hire listen locate look lookup make manage
  order pay place play provide purchase read remove rent request reserve return schedule search see
  select send set share show sign start stop take track transfer turn update view watch"""
)
_UNCOUNTED = _words("media money music weather information help insurance traffic news")
_CUT = re.compile(
  r" (?:by|in|for|at|on|with|from|to|based|according|matching|that|and|or|which|where|between|near"
  r"|user|of (?:some|an? (?:particular|certain|given|specific)))\b.*|[,.;(].*| - .*"
)


def spoken_values(slot: Slot) -> tuple[str, ...]:
  """Returns possible values without dontcare, which some schemas list and only users may say."""
  return tuple(value for value in slot.possible_values if value != DONTCARE)


def slot_kind(slot: Slot) -> str:
  """Returns the kind of a slot's values: BOOLEAN, CATEGORY or a key of `values.VALUE_KINDS`.

  "title" is the name of any thing, and the default if nothing is known.
  """
  if slot.is_categorical:
    return BOOLEAN if {v.lower() for v in spoken_values(slot)} == {"true", "false"} else CATEGORY
  return _kind_of_words(_name(slot), slot.description.lower().rstrip("."))


def callers_number(slot: Slot) -> bool:
  """Whether a slot counts what the caller brings or books: passengers or tickets, not bedrooms."""
  counted_noun = _counted(_name(slot))
  return bool(counted_noun) and counted_noun.split()[-1] in _CALLERS


def default_slot_words(slot: Slot) -> dict[str, list[str] | dict[str, list[str]]]:
  """Returns the four parts of a slot's templates: noun, tell, ask, say."""
  name = _name(slot)
  if slot_kind(slot) == BOOLEAN:
    return _boolean_words(slot, name)
  kind = _kind_of_words(name, slot.description.lower().rstrip("."))
  if slot.is_categorical and kind not in (*_AT, "person"):
    kind = CATEGORY
  noun = _noun(slot, name)
  thing = _NAME.sub("", noun)
  counted_noun = _counted(name)
  tell = [f"with {{value}} as the {noun}"]
  ask = [f"What {noun} would you like?", f"Which {noun} do you want?"]
  if counted_noun:
    tell.append(f"with {{value}} for the {noun}")
    if counted_noun.split()[-1] in _PEOPLE:
      tell = ["for {value}", "for a group of {value}"]
    if counted_noun.endswith("s"):
      ask = [f"How many {counted_noun}?", f"How many {counted_noun} do you want?"]
  elif kind in _AT:
    tell, ask = _where_or_when(kind, name, thing)
  elif kind == "price":
    tell = ["for {value}", f"with {_indefinite(noun)} of {{value}}"]
  elif kind == "phone":
    tell = [f"with the {noun} {{value}}", "reachable at {value}"]
  elif kind == "person":
    preposition = next((_BY[w] for w in thing.split() if w in _BY), "with")
    tell = [f"{preposition} {{value}}", f"with {{value}} as the {thing}"]
    ask = [f"Which {thing} would you like?"]
    if _KIND_OF_HEAD.get(thing.split()[-1]) == "person" and not thing.endswith("s"):
      ask.append(f"Who is the {thing}?")
  elif noun != thing:  # "restaurant name"
    tell = [f"with {{value}} as the {thing}", f"with {{value}} for the {thing}"]
    ask = [f"Which {thing} would you like?", f"What is the name of the {thing}?"]
  else:
    tell.append(f"with the {noun} {{value}}")
  nouns = list(dict.fromkeys((noun, thing)))
  return {"noun": nouns, "tell": tell, "ask": ask, "say": _say(slot)}


def default_intent_words(intent: Intent) -> dict[str, list[str]]:
  """Returns the two parts of an intent's templates: open, do. See docs/papers/simulator.md."""
  description = intent.description.strip()
  description = description[:1].lower() + description[1:].replace(" your ", " the ")
  verb, _, thing = name_words(intent.name, INTENT).partition(" ")
  do = [f"{ {'lookup': 'look up', 'search': 'search for'}.get(verb, verb)} "
        f"{_with_article(thing, description)}".strip()]  # fmt: skip
  if description.split(" ")[0] in _VERBS | {verb}:
    start = len(" ".join(description.split(" ")[:2]))  # "search for" is not cut
    do.append((description[:start] + _CUT.sub("", description[start:])).strip())
  short = [phrase for phrase in dict.fromkeys(do) if phrase and len(phrase.split()) <= 9]
  do = short or [do[0] or intent.name]  # "_"
  openings = itertools.product(("I want to", "I would like to", "Please help me"), do)
  return {"open": list(map(" ".join, openings)), "do": do}


# --- kinds ---------------------------------------------------------------------------------


def _name(slot: Slot) -> str:
  return name_words(slot.name, SLOT) or slot.name  # "_"


def _kind_of_words(name: str, description: str) -> str:
  words = name.split()
  if _counted(name) or name in ("stay length", "length of stay"):
    return "count"
  if words[-1] == "number" and len(words) > 1 and words[-2] in _HEADS["phone"].split():
    return "phone"
  if "percent" in description:
    return "number"
  if words[-1] == "by":  # directed by
    return "person"
  heads = (
    _NAME.sub("", _PER.sub("", name)),
    _NAME.sub("", name),
  )  # "date of visit", "check in date"
  kind = next((_KIND_OF_HEAD[w] for h in heads if (w := h.split()[-1]) in _KIND_OF_HEAD), "")
  if kind == "time" and (description.startswith("number of") or "wait" in name):
    return "count" if description.startswith("number of") else "duration"
  if kind == "city":
    return _kind_of_place(words, description)
  if words[-1] == "name" and not kind:
    kind = next((k for w in words if (k := _KIND_OF_HEAD.get(w)) == "person"), "title")
  return kind or _kind_of_description(description)


def _kind_of_place(words: list[str], description: str) -> str:
  if re.search(r"\b(?:city|town)\b", description):
    return "city"
  if "address" in description or (words[-1] == "location" and len(words) > 1):
    return "title" if description.startswith("name of") else "address"
  return "city"


def _kind_of_description(description: str) -> str:
  described = _description_head(description)
  if re.search(r"\b(?:speed|temperature|percentage)\b", described):
    return "number"
  return _KIND_OF_HEAD.get((described.split() or [""])[-1], "title")


def _description_head(description: str) -> str:
  """ "Name of the director of the movie" -> "director"; lower case."""
  text = _NAME_OF.sub("", description, count=1)
  text = re.sub(f"^{_DETERMINER}", "", text)
  text = _PER.sub("", f" {text}").strip() or text
  first_word, *further_words = text.split() or [""]
  head = [first_word]
  for word in further_words:
    if word.endswith("ing"):
      break
    head.append(word)
  return " ".join(head).rstrip(",")


def _counted(name: str) -> str:
  """What a slot counts ("seats" for "number of seats"), or ""."""
  match = _COUNTED.fullmatch(name)
  if match:
    return match[1] or match[2]
  if name.endswith((" size", " quantity")):
    return name.rpartition(" ")[0]
  return name if _KIND_OF_HEAD.get(name.split()[-1]) == "count" else ""


# --- words of slots ------------------------------------------------------------------------


def _noun(slot: Slot, name: str) -> str:
  first_word, _, remainder = name.partition(" ")
  if remainder and first_word in ("from", "to"):
    return f"{'departure' if first_word == 'from' else 'destination'} {remainder}"
  if first_word in ("num", "no") and remainder:
    return f"number of {remainder.removeprefix('of ')}"
  if first_word == "number" and remainder and not remainder.startswith("of "):
    return f"number of {remainder}"
  if name in ("from", "to", "where to", "starring") or name.endswith(" by"):
    return _description_head(slot.description.lower().rstrip(".")) or name
  return f"number of {name}" if _counted(name) == name else name


def _where_or_when(kind: str, name: str, noun: str) -> tuple[list[str], list[str]]:
  words = name.split()
  tell, ask = [f"{_AT[kind]} {{value}}"], [f"What {noun} would you like?", f"Which {noun}?"]
  if kind in ("city", "station", "address"):
    if words[0] in _FROM:
      return ["from {value}", "leaving from {value}"], ["Where do you leave from?", *ask]
    if words[0] in _TO or words[-1] == "to":
      return ["to {value}", "going to {value}"], ["Where do you want to go?", *ask]
  way = _WAYS.get(" ".join(words[:2])) or _WAYS.get(words[0])
  if way:
    return [f"{way} {_AT[kind]} {{value}}", f"with {{value}} as the {noun}"], ask
  phrase = "for {value}" if kind in ("date", "time") else f"with {{value}} as the {noun}"
  return [*tell, phrase], ask


def _say(slot: Slot) -> dict[str, list[str]]:
  return {v: [v.replace("_", " ")] for v in slot.possible_values if "_" in v}


def _boolean_words(slot: Slot, name: str) -> dict[str, list[str] | dict[str, list[str]]]:
  first_word, _, remainder = name.partition(" ")
  noun = remainder if remainder and first_word in _HAVING | {"is"} else name
  article = re.search(rf"\b(an? ){re.escape(noun)}\b", slot.description.lower())
  object_text = f"{article[1] if article else ''}{noun}"  # "has a garage"
  yes, no = f"with {object_text}", f"without {object_text}"
  ask = [f"Do you want {object_text}?", f"Would you like {object_text}?"]
  if first_word in _DOING and remainder:
    yes, no = f"that {name}", f"that does not {first_word[:-1]} {remainder}"
    ask = [f"Should it be one {yes}?"]
  elif first_word in ("is", "good") or (not remainder and name.endswith(("ed", "able", "ible"))):
    yes, no = f"that is {noun}", f"that is not {noun}"
    ask = [f"Should it be {noun}?", f"Do you want one {yes}?"]
  elif name.endswith(("allowed", "welcome", "included", "permitted")):
    ask = [f"Should it be {yes}?"]
  values = {value.lower(): value for value in slot.possible_values}
  say = {values["true"]: [yes], values["false"]: [no]}
  return {"noun": [noun], "tell": ["{value}"], "ask": ask, "say": say}


# --- words of intents ----------------------------------------------------------------------


def _with_article(thing: str, description: str) -> str:
  """The object of an intent ("restaurant") with the article that it needs, if any."""
  thing = _PER.sub("", thing)  # "home by area"
  words = thing.split()
  if not words or words[0] in ("a", "an", "the"):
    return thing
  if words[0] in ("in", "up", "for", "to", "by", "on", "into", "out"):  # "enroll in class"
    return f"{words[0]} {_with_article(' '.join(words[1:]), description)}".strip()
  if re.search(rf"\b(?:the|your) {re.escape(thing)}\b", description):
    return f"the {thing}"
  if words[-1] in _UNCOUNTED or any(re.search(r"[^usi]s$", word) for word in words):
    return thing
  return _indefinite(thing)


def _indefinite(thing: str) -> str:
  sounds_like_you = thing.startswith(("one", "uni", "use", "eu"))
  return f"{'an' if thing[0] in 'aeiou' and not sounds_like_you else 'a'} {thing}"
