"""Data movement made visible: a plan as a graph, laid out, drawn as SVG, and put on a page that needs no network."""
