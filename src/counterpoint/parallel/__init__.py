"""One training or evaluation in several processes, as torchrun starts them."""
