"""REINFORCE: a policy that learns to keep a cart near the middle. Episodes have another length every time.

    dvm run mindspore_reinforce.py
"""
from data import episodes
from mindspore import Tensor, nn, ops
from mindspore_loop import run


def setup(captured):
    model = nn.SequentialCell(nn.Dense(3, 16), nn.Tanh(), nn.Dense(16, 2))

    @captured
    def probabilities(state):
        return ops.softmax(model(state), -1)

    @captured
    def loss_fn(states, actions, returns):
        chosen = ops.gather_elements(ops.log_softmax(model(states), -1), 1, actions.expand_dims(1)).squeeze(1)
        return -(chosen * (returns - 0.5)).mean()

    def policy(state):
        return probabilities(Tensor(state)).asnumpy()

    return model, loss_fn, episodes(policy)


if __name__ == "__main__":
    run(__doc__, setup)
