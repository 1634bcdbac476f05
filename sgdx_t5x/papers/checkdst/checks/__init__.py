"""Checks of a tracker on perturbed test sets, after CheckDST: same frames, in one table."""

from sgdx_t5x.papers.checkdst.checks.check import Checked, CheckedSet, check
from sgdx_t5x.papers.checkdst.checks.report import FORMAT, check_report

__all__ = ["FORMAT", "Checked", "CheckedSet", "check", "check_report"]
