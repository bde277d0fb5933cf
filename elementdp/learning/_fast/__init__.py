"""The rules that make group gradients cheap: what passes through a layer gives the norms and the clipped sums."""
