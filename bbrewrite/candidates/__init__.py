"""Large programs: which definitions are planned together, each kind once, and one kernel program of all plans."""
