"""How hypothesis draws for `fuzz`: what is found is reported by this project, and nothing is kept between runs."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, Verbosity, settings


def quiet_settings(instances: int) -> settings:
    """At most so many instances, and their shrinking, without a word from hypothesis."""
    return settings(
        max_examples=instances,
        phases=(Phase.generate, Phase.shrink),
        database=None,
        deadline=None,
        report_multiple_bugs=False,
        suppress_health_check=tuple(HealthCheck),  # pyright: ignore[reportArgumentType]
        verbosity=Verbosity.quiet,
    )
