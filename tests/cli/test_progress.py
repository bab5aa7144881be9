"""A person sees the loss, the speed and the time left."""

import io

from rich.console import Console

from deepwide.cli.progress import Bar

TRAIN = {"kind": "train", "step": 3, "steps": 10, "loss": 2.5, "lr": 0.1, "seconds": 1.0, "tokens_per_second": 2000.0}
VALIDATION = {"kind": "validation", "step": 3, "steps": 10, "loss": 2.25, "bits_per_byte": 3.1, "seconds": 12.0}


def test_progress_says_loss_speed_and_share_of_peak() -> None:
    out = io.StringIO()
    with Bar(10, train_flops_per_token=1e6, peak=1e10, console=Console(file=out, width=200)) as bar:
        bar(TRAIN)
        bar(VALIDATION | {"tokens_per_second": 4000.0})
    first, second = out.getvalue().splitlines()
    assert first == "step 3/10: loss 2.5000, 2K tokens/s, 20% of peak"
    assert "validation 2.2500 (3.100 bits/byte), 4K tokens/s, 40% of peak" in second


def test_an_older_validation_says_of_which_step_it_is() -> None:
    out = io.StringIO()
    with Bar(10, 1e6, 1e10, Console(file=out, width=200)) as bar:
        bar(VALIDATION | {"tokens_per_second": 0.0})
        bar(TRAIN | {"step": 9, "seconds": 30.0})
    assert out.getvalue().splitlines() == [
        "step 3/10: validation 2.2500 (3.100 bits/byte)",
        "step 9/10: loss 2.5000, validation 2.2500 (3.100 bits/byte) at step 3, 2K tokens/s, 20% of peak",
    ]


def test_a_terminal_gets_a_bar_with_the_time_left() -> None:
    out = io.StringIO()
    with Bar(10, 1e6, 1e10, Console(file=out, width=150, force_terminal=True)) as bar:
        bar(TRAIN)
        bar.progress.refresh()
    assert "step 3/10" in out.getvalue()
    assert "━" in out.getvalue()


def test_a_task_shows_its_accuracy_in_place_of_bits() -> None:
    out = io.StringIO()
    with Bar(10, 1e6, 1e10, Console(file=out, width=200)) as bar:
        bar(
            {"kind": "validation", "step": 0, "steps": 10, "loss": 2.25, "accuracy": 0.5, "seconds": 0.0}
            | {"tokens_per_second": 0.0}
        )
    assert out.getvalue() == "step 0/10: validation 2.2500 (accuracy 0.500)\n"
