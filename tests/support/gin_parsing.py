"""Prints what gin files and flags resolve to, see `gin_cases.parse`; run as __main__.

There T5X's run files look for train, evaluate and infer.
"""

import json
import sys

import gin

from t5x import gin_utils
from t5x._script import gin_config
from t5x.eval import evaluate
from t5x.infer import infer
from t5x.train import train


def value(parameter):
  """Returns what a parameter is bound to; None if nothing binds it."""
  try:
    found = gin.query_parameter(parameter)
  except ValueError:  # evaluation has no TRAIN_STEPS
    return None
  return repr(found) if isinstance(found, gin.config.ConfigurableReference) else found


def parsed(files, bindings, parameters):
  """Returns the values of the parameters, or what is wrong with the files and bindings."""
  gin.clear_config()
  for function in (train, evaluate, infer):
    gin.external_configurable(function, module="__main__")
  try:
    gin_utils.parse_gin_flags([], files, bindings)
    unused = sorted(set(gin_config.macros()) - set(gin_config._referenced_macros()))
    values = {key: value(parameter) for key, parameter in parameters.items()}
  except Exception as e:
    return f"{type(e).__name__}: {e}"
  return f"macros that nothing uses: {', '.join(unused)}" if unused else values


if __name__ == "__main__":
  print(json.dumps({name: parsed(*case) for name, *case in json.loads(sys.argv[1])}))
