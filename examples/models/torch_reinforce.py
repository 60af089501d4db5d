"""REINFORCE: a policy that learns to keep a cart near the middle. Episodes have another length every time.

    dvm run torch_reinforce.py
"""
import torch
from data import episodes
from torch import nn
from torch_loop import run


def setup(compiled):
    model = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 2))

    @compiled
    def probabilities(state):
        return model(state).softmax(-1)

    @compiled
    def loss_fn(states, actions, returns):
        chosen = model(states).log_softmax(-1).gather(1, actions[:, None]).squeeze(1)
        return -(chosen * (returns - 0.5)).mean()

    @torch.no_grad()
    def policy(state):
        return probabilities(torch.from_numpy(state)).numpy()

    return model, loss_fn, episodes(policy)


if __name__ == "__main__":
    run(__doc__, setup)
