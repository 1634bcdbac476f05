"""Checks of a tracker on perturbed test sets, after CheckDST: same frames, in one table."""

from sgdx_t5x.papers.checkdst.checks.check import check
from sgdx_t5x.papers.checkdst.checks.report import check_report

__all__ = ["check", "check_report"]
