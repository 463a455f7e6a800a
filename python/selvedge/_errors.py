"""Exceptions: one message each, with the place, what is wrong there, and what would be right."""

from __future__ import annotations

from ._native import ScenarioError, SelvedgeError, StudyError

__all__ = ["ScenarioError", "SelvedgeError", "StudyError"]
