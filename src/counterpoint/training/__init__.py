"""Training: the loop, a step, the engines that compute it, the network, the optimizer, and how long a step takes."""
