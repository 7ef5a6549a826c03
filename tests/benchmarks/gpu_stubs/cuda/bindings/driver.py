"""The driver's module as programs import it, on an emulated GPU that the stub of torch shares."""

from typing import Any

from tests.api.emulated_driver import EmulatedDriver

emulated = EmulatedDriver()


def __getattr__(name: str) -> Any:
    return getattr(emulated, name)
