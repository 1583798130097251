"""What vLLM takes a processor for: two things that it gets wrong, where it is put on one.

What the package index has of torchvision is built for accelerators: beside a torch for processors its library
does not load, and its import fails for want of two operators, which nothing here calls. A torchvision for
processors is left as it is.

Where a processor has AMX, vLLM packs the weights of a convolution in place, and can then load no others over
them, as training does: it is told that there is none.
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

if find_spec("torch") is not None:
    import torch.cpu

    torch.cpu._is_amx_tile_supported = lambda: False  # noqa: SLF001
