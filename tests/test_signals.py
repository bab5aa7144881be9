"""A first signal asks to stop; a second one interrupts where that was asked for."""

import os
import signal

import pytest

from deepwide.signals import stop_on_signals


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_noted_and_the_old_handlers_come_back(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with stop_on_signals() as stop:
        assert not stop()
        os.kill(os.getpid(), number)
        os.kill(os.getpid(), number)
        assert stop()
    assert signal.getsignal(number) is before


def test_a_second_signal_interrupts_when_asked() -> None:
    with stop_on_signals(second_interrupts=True) as stop:
        os.kill(os.getpid(), signal.SIGINT)
        assert stop()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_the_first_signal_says_what_happens_now(capfd: pytest.CaptureFixture[str]) -> None:
    with stop_on_signals(first_says="Stopping."):
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
    assert capfd.readouterr().err == "\nStopping.\n"


def test_a_child_stops_when_its_parent_dies(monkeypatch: pytest.MonkeyPatch) -> None:
    with stop_on_signals(with_parent=True) as stop:
        assert not stop()
        monkeypatch.setattr(os, "getppid", lambda: 1)
        assert stop()


def test_where_there_is_nothing_to_wait_for_the_first_signal_interrupts(capfd: pytest.CaptureFixture[str]) -> None:
    waits = True
    with stop_on_signals(first_says="Stopping.", at_once=lambda: not waits) as stop:
        assert not stop()
        waits = False
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        assert stop()
    assert capfd.readouterr().err == ""
