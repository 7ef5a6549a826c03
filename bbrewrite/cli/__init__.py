"""The command `bbrewrite`: options, progress and reports. No stage knows about it."""
