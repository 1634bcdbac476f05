"""Progress counters for scoring."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from sgdx_t5x.data.dialogue import Dialogue
from sgdx_t5x.metrics import GoldFrame
from sgdx_t5x.scoring.predictions.files import PredictionSource, find_files
from sgdx_t5x.scoring.rows import GROUPS

OnProgress = Callable[[str, int, int | None, str], None]  # (task, done, total or None, unit)
_DIALOGUES_BETWEEN_CALLS, _MEGABYTE = 100, 1_000_000


def counted(
  dialogues: Iterable[Dialogue], task: str, total: int | None, on_progress: OnProgress
) -> Iterator[Dialogue]:
  """Yields dialogues and counts them."""
  for done, dialogue in enumerate(dialogues, start=1):
    yield dialogue
    if done % _DIALOGUES_BETWEEN_CALLS == 0:
      on_progress(task, done, total, "dialogues")


def byte_counter(
  sources: Mapping[str, PredictionSource], split: str, on_progress: OnProgress
) -> Callable[[int], None]:
  """Returns a callable that takes the number of further bytes of predictions read."""
  files = [file for source in sources.values() for file in find_files(source, split)]
  total, done = sum(file.stat().st_size for file in files), 0

  def on_read(size: int) -> None:
    nonlocal done
    done += size
    on_progress("reading predictions", done // _MEGABYTE, total // _MEGABYTE, "MB")

  return on_read


def row_counter(
  gold: Iterable[GoldFrame], num_metrics: int, on_progress: OnProgress
) -> Callable[[], None]:
  """Returns a callable to be called after each table row; all rows take about as long."""
  services = {frame.service for frame in gold}
  domains = {service.split("_")[0] for service in services}
  total = (len(GROUPS) + len(domains) + len(services)) * (1 + num_metrics)
  done = 0

  def on_row() -> None:
    nonlocal done
    done += 1
    on_progress("computing scores", done, total, "rows")

  return on_row
