"""Training: the loop, a step, the engines that compute it, the network, the optimiser, and how long a step takes."""
