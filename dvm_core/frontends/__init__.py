"""Front ends: how programs reach the graph (builder, jit, MindSpore, PyTorch) and gradients over our own instructions."""
