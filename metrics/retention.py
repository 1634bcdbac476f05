"""Retained, lost, gained: what happens to frames when only the schema is reworded.

A frame is right if its score is 1, as for cJGA, which excludes partial fuzzy matches. Of the frames
right with the original schema, those also right with a variant are *retained*, the others *lost*;
*gained* are wrong with the original and right with the variant. All are means over the K variants:

  retained = sum_k #(right with the original and with variant k) / (K #(right with the original))
  lost     = sum_k #(right with the original, wrong with variant k) / (K #(right with the original))
  gained   = sum_k #(wrong with the original, right with variant k) / (K #(frames))

So lost = 1 - retained, and for any variant, and on average,
  share right with the variant = retained * share right with the original + gained,
which is JGA where every score is 0 or 1. A frame that is always wrong counts in neither retained
nor lost, so a tracker cannot seem more robust by being wrong more often, as it can with schema
sensitivity.
"""

import numpy as np

from sgdx_t5x.metrics.means import mean


def retained(original: np.ndarray, variants: np.ndarray) -> float:
  """Returns the share of frames right with a variant, of those right with the original.

  Args:
    original: [F] float, scores with the original schema, from 0 to 1; right is 1.
    variants: [K, F] float, scores of the same frames with K variants, any number of them.

  Returns:
    0 to 1, higher is more robust; 1 if and only if nothing is lost. nan if no frame is right with
    the original, or K is 0. Frames with nan in a row are excluded.
  """
  return mean(frame_retained(original, variants).ravel())


def frame_retained(original: np.ndarray, variants: np.ndarray) -> np.ndarray:
  """Returns 1.0 where a variant retains a frame, 0.0 where it loses it: [F], [K, F] -> [K, F].

  nan where the frame is wrong with the original, and for all variants if the frame lacks a score.
  """
  # Only a frame that was right can be retained or lost.
  was_right = _scored(original, variants) & (original >= 1)
  return np.where(was_right, variants >= 1, np.nan)


def frame_gained(original: np.ndarray, variants: np.ndarray) -> np.ndarray:
  """Returns 1.0 where a variant gains a frame, else 0.0: [F], [K, F] -> [K, F].

  nan for all variants if the frame lacks a score.
  """
  is_gained = (original < 1) & (variants >= 1)
  return np.where(_scored(original, variants), is_gained, np.nan)


def _scored(original: np.ndarray, variants: np.ndarray) -> np.ndarray:
  """[F] bool, the frames that have a score in every row."""
  return ~(np.isnan(original) | np.isnan(variants).any(axis=0))
