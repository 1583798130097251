"""The probe of a run that vLLM generates: rollouts that it sampled, weighed by what the scored model makes of them."""

from __future__ import annotations

import io
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.unit.probe.designs import design
from tests.unit.stack import require_vllm
from tests.vllm.run import specified

if TYPE_CHECKING:
    from pathlib import Path
