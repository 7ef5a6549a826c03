"""What the command's exit codes mean."""

WRONG_RESULT = 1
INPUT_AT_FAULT = 2
TOOL_MISSING = 3
INTERNAL_FAULT = 70  # of this program: as in sysexits.h
INTERRUPTED = 130  # as a shell reports Ctrl-C
