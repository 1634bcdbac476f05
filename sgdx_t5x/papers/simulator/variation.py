"""Surface forms of canonical values: "March 5th" for "2019-03-05", "6:30 pm" for "18:30".

As in the SGD paper (section 3.3) values vary in surface form, and a speaker keeps to one form
within a dialogue. States hold surface forms; actions and service calls the canonical value.
"""

import datetime
import functools
import re

from sgdx_t5x.papers.simulator.values import TODAY

# Used without the preposition that a template may have before a value ("on today").
RELATIVE_DAYS = ("today", "tomorrow", "the day after tomorrow")
_WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
          "twelve")  # fmt: skip
_ABBREVIATIONS = {"Street": "St", "Avenue": "Ave", "Road": "Rd", "Saint": "St.", "Square": "Sq",
                  "Lane": "Ln"}  # fmt: skip
_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)")
_TIME = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")
_PRICE = re.compile(r"\$(\d+(?:\.\d\d)?)")


def is_relative_day(text: str) -> bool:
  """Whether a text names a day as seen from today: "tomorrow", "next Friday"."""
  return text.lower() in RELATIVE_DAYS or text.lower().startswith("next ")


@functools.lru_cache(maxsize=65536)
def forms(value: str) -> tuple[str, ...]:
  """Returns the surface forms of a value of a non-categorical slot; the first is the plainest.

  >>> forms("18:30")[:2]
  ('6:30 pm', 'half past 6 in the evening')
  """
  if match := _DATE.fullmatch(value):
    try:
      return _date(datetime.date(*map(int, match.groups())))
    except ValueError:  # not a valid date: a code that looks like one
      return (value,)
  if match := _TIME.fullmatch(value):
    return _time(int(match[1]), match[2])
  if match := _PRICE.fullmatch(value):
    return (value, f"{match[1]} dollar{'' if match[1] == '1' else 's'}")
  if value.isdecimal() and 0 < int(value) <= len(_WORDS) and not value.startswith("0"):
    return (value, _WORDS[int(value) - 1])
  short = " ".join(_ABBREVIATIONS.get(word, word) for word in value.split(" "))
  return (value,) if short == value else (value, short)


def is_moment(value: str) -> bool:
  """Whether a canonical value is a date or a time of day."""
  return bool(_DATE.fullmatch(value) or _TIME.fullmatch(value))


def is_name(value: str) -> bool:
  """Whether a value looks like a name, which can stand alone ("how about Elmport Camp")."""
  return value[:1].isalpha() and not value[:1].islower()


def _date(day: datetime.date) -> tuple[str, ...]:
  month, ordinal = day.strftime("%B"), _ordinal(day.day)
  forms = [f"{month} {ordinal}", f"the {ordinal} of {month}", f"{ordinal} of {month}"]
  if day.year != TODAY.year:
    return tuple(f"{form} {day.year}" for form in forms)
  ahead = (day - TODAY).days
  if 0 <= ahead < len(RELATIVE_DAYS):
    forms.append(RELATIVE_DAYS[ahead])
  elif 0 < ahead < 7:
    forms.append(f"next {day:%A}")  # today is a Friday: this week's days are above
  if day.month == TODAY.month:
    forms.append(f"the {ordinal}")
  return tuple(forms)


def _ordinal(number: int) -> str:
  ending = "th" if 10 < number % 100 < 14 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
  return f"{number}{ending}"


def _time(hour: int, minutes: str) -> tuple[str, ...]:
  part = "in the morning" if hour < 12 else "in the afternoon" if hour < 18 else "in the evening"
  clock, next_hour = hour % 12 or 12, hour % 12 + 1
  plain = f"{clock}:{minutes}" if minutes != "00" else str(clock)
  spoken = {"00": f"{clock} o'clock", "15": f"quarter past {clock}", "30": f"half past {clock}",
            "45": f"quarter to {next_hour}"}  # fmt: skip
  half = "am" if hour < 12 else "pm"
  forms = [f"{plain} {half}", f"{plain} {part}"]
  if (clock, minutes) == (12, "00"):
    return ("12 pm", "noon") if hour else ("12 am", "midnight")
  if minutes in spoken:
    forms.insert(1, f"{spoken[minutes]} {part}")
  return tuple(forms)
