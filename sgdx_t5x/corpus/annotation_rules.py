"""The rules of annotation, in words.

docs/dialogue-checks.md says how often real SGD violates each; `annotation.py` checks them.
"""

MAX_RESULTS = 10
ERRORS = {
  "id": "a dialogue_id contains no / and is unique in its split",
  "services": "services lists the services of the dialogue's frames, each once",
  "ending": "the last turn is the system's, and the only one with its GOODBYE act",
  "frames": "a turn has at least one frame, and at most one per service",
  "system-frame": "a system turn has one frame, of a service of the preceding user turn",
  "keys": "a frame has slots; only user frames have a state, only system frames a service_call",
  "span-slot": "spans belong to non-categorical slots of the service",
  "span-offsets": "a span lies in its utterance: 0 <= start < exclusive_end <= length",
  "span-state": "the text of a span in a user turn is one of the state's values for its slot",
  "span-act": "spans are exactly the values of non-categorical slots in the frame's acts",
  "act": "acts are those that the SGD paper lists for the speaker",
  "act-form": "slot and number of values are as SGD's README describes them for the act",
  "canonical": "there are as many canonical_values as values",
  "act-intent": "an act's intent is one of the service's; in a user act, it is the active intent",
  "act-state": "values of the user's INFORM and SELECT acts are in the state",
  "requested": "requested_slots are the slots of the user's REQUEST acts, each once",
  "intent-change": "an intent becomes active through INFORM_INTENT or AFFIRM_INTENT",
  "state-slot": "slots of a state are required or optional slots of an intent",
  "state-categorical": "a categorical slot has one value: one of its possible_values, or dontcare",
  "state-free": "values of a non-categorical slot occur in the dialogue so far, or are dontcare",
  "state-said": "the value of a categorical slot is the value of an act in a turn so far",
  "call-intent": "a service call is for the active intent",
  "call-slots": "parameters of a call are the state's slots that the intent takes, except dontcare",
  "call-values": "categorical parameters have the state's value, one of the possible_values",
  "call-affirmed": "a transactional call follows the user's AFFIRM act",
  "results": "a call, and only a call, has results: at most 10, at most 1 if it is transactional",
  "result-slots": "slots of a result are result_slots of the intent",
  "result-match": "a result has the call's values for categorical slots",
  "notify": "NOTIFY_SUCCESS needs a call with results; a call without results has NOTIFY_FAILURE",
  "transaction": "NOTIFY_SUCCESS or _FAILURE needs a call; a transactional call needs one of them",
  "count": "INFORM_COUNT gives the number of results",
}
WARNINGS = {
  "empty-utterance": "an utterance is not empty",
  "overlap": "spans of a turn do not overlap",
  "span-slot-state": "the slot of a span in a user turn is in the state",
  "act-value": "values of categorical slots in acts are possible_values",
  "state-keeps": "slots stay in a service's state from one user turn to the next",
  "call-required": "a call has all required slots",
  "result-free": "a result has the call's values for non-categorical slots",
  "result-all-slots": "a result has all result_slots of the intent",
  "result-value": "values of categorical slots in results are possible_values",
  "result-source": "values of the system's OFFER and INFORM acts are in a result",
}
