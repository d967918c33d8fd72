"""The paper's evaluation (sections 4.2 to 4.6) on four sensing tasks, real or simulated."""

from __future__ import annotations
