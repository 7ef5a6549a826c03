"""From block statements to steps, and the passes over steps that make loops cheaper before they are printed."""
