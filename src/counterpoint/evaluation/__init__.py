"""From a finished run to its results: logits of each set of images, scores, temperatures, comparisons."""
