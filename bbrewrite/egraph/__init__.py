"""From a block program and rules to a saturated, frozen e-graph."""
