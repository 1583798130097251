"""Operators of torchvision that vLLM's imports want and nothing here calls.

What the package index has of torchvision is built for accelerators: beside a torch for processors its library
does not load, and its import fails for want of two operators. A torchvision for processors is left as it is.
"""

from importlib.util import find_spec

if find_spec("torchvision") is not None:
    try:
        import torchvision
    except RuntimeError:
        import torch

        operators = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            operators.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        import torchvision  # noqa: F401
