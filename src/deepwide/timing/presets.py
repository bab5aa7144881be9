"""Machines that nobody has to measure: two constants each, with where they come from. They say something about decoding
only, in bf16, and their sum of terms is an upper estimate where memory and arithmetic overlap.
"""

from collections.abc import Mapping
from pathlib import Path

from deepwide.answers import Interval
from deepwide.errors import DeepwideError, did_you_mean, quoted
from deepwide.timing.profile import MachineProfile, PhaseProfile, load_machine

H100_BYTES, H100_FLOPS = 3.35e12, 9.89e14  # per second, dense bf16: recalled, not confirmed
A100_BYTES, A100_FLOPS = 2.039e12, 3.12e14
MEMORY = 80 * 10**9  # of either, the larger A100
ERDIL = "Erdil 2025 (arXiv 2506.04645)"


def _preset(
    name: str,
    source: str,
    layer_us: tuple[float, float | None, float | None],
    rate: float,
    peak: float,
    devices: int = 1,
) -> MachineProfile:
    low, high = (None if limit is None else limit / 1e6 for limit in layer_us[1:])
    nothing = Interval(0.0)
    decode = PhaseProfile(
        per_byte=Interval(1 / (rate * devices)),
        per_flop=Interval(1 / (peak * devices)),
        per_layer=Interval(layer_us[0] / 1e6, low, high),
        constant=nothing,
    )
    return MachineProfile(
        name=name,
        source=source,
        device="cuda" if devices == 1 else f"{devices} × cuda",
        precision="bf16",
        weight_bytes=2,
        peak_flops=peak * devices,
        bytes_per_second=rate * devices,
        devices=devices,
        memory_bytes=MEMORY,
        phases={"decode": decode},
    )


PRESETS: Mapping[str, MachineProfile] = {
    machine.name: machine
    for machine in (
        _preset(
            "captured",
            f"one H100 with captured CUDA graphs: 16 µs per layer, four kernels of 4 µs one after another ({ERDIL}); "
            "the default of a plan",
            (16.0, None, None), H100_BYTES, H100_FLOPS,
        ),
        _preset(
            "eager",
            "one A100 with eager PyTorch: 340 to 570 µs per layer, worked out from the decode times in Morph's README "
            "(1B models), if those are 256 tokens at batch 1",
            (455.0, 340.0, 570.0), A100_BYTES, A100_FLOPS,
        ),
        _preset(
            "tensor-8", f"8 H100, tensor parallel: about 52 µs per layer with all-reduces, worked out from {ERDIL}",
            (52.0, None, None), H100_BYTES, H100_FLOPS, 8,
        ),
        _preset(
            "tensor-64", f"64 H100, tensor parallel: about 110 µs per layer with all-reduces, worked out from {ERDIL}",
            (110.0, None, None), H100_BYTES, H100_FLOPS, 64,
        ),
    )
}  # fmt: skip


def with_rates(machine: MachineProfile, bytes_per_second: float, layer_seconds: float) -> MachineProfile:
    """A preset with another bandwidth and overhead per layer while decoding; itself if they are its own."""
    law = machine.phases["decode"]
    if (1 / bytes_per_second, layer_seconds) == (law.per_byte.value, law.per_layer.value):
        return machine
    changes = {"per_byte": Interval(1 / bytes_per_second), "per_layer": Interval(layer_seconds)}
    given = f"{bytes_per_second / 1e9:g} GB/s and {layer_seconds * 1e6:g} µs per layer, as given"
    phases = {"decode": law.model_copy(update=changes)}
    return machine.model_copy(update={"name": "given", "source": given, "phases": phases, "memory_bytes": None})


def find_machine(name: str | Path | MachineProfile) -> MachineProfile:
    """A preset by its name, or a profile from the JSON file that measuring saved.

    >>> find_machine("captured").phases["decode"].per_layer.value
    1.6e-05
    """
    if isinstance(name, MachineProfile):
        return name
    if str(name) in PRESETS:
        return PRESETS[str(name)]
    if not isinstance(name, str | Path):
        raise DeepwideError(f"a machine is a preset's name, a profile or its file, not {quoted(name)}.")
    path = Path(name)
    if path.suffix == ".json":
        return load_machine(path)
    near = did_you_mean(str(name)[:60], PRESETS)
    raise DeepwideError(f"no machine '{str(name)[:60]}', nor a profile's JSON file of that name: {near}")
