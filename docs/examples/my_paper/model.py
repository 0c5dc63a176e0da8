"""The two-layer linear model of the paper: y = U Vᵀ x, on whitened inputs."""

import numpy as np


def loss(U, V, T):
    """½‖U Vᵀ − T‖²_F for U (m, r), V (n, r) and the target T (m, n)."""
    return 0.5 * np.sum((U @ V.T - T) ** 2)


def gradients(U, V, T):
    """The gradients of the loss in U and in V."""
    residual = U @ V.T - T
    return residual @ V, residual.T @ U


def step(U, V, T, rate):
    """One step of gradient descent."""
    in_u, in_v = gradients(U, V, T)
    return U - rate * in_u, V - rate * in_v
