"""Predictions in, scores out: reading predictions, scoring, comparing two systems."""

from sgdx_t5x.scoring.score import ALL, FORMAT, Scored, score_predictions, score_report
from sgdx_t5x.scoring.settings import Settings

__all__ = ["ALL", "FORMAT", "Scored", "Settings", "score_predictions", "score_report"]
