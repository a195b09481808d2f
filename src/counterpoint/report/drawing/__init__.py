"""Charts as inline SVG, and heat maps."""
