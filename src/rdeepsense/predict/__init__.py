"""Predictions of many rows: columns of answers, chunk by chunk, within a stated memory."""

from __future__ import annotations
