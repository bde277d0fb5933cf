"""Our band of random allocation against PLD_accounting's, for data added or removed: its ends, and the time for it.

Run ``python benchmarks/allocation.py``. The peer (Feldman & Shenfeld 2026) counts no replaced data. Both bands are
bounds of one number, so they have to overlap; the script fails if they do not.
"""

import time

from PLD_accounting import gaussian_allocation_epsilon_range
from rich.console import Console
from rich.table import Table

from elementdp.privacy import RandomAllocation, Relation, account

CASES = [(1.3, 100, 5, 5e-5), (2.0, 25, 8, 5e-5), (1.0, 100, 1, 1e-6)]  # σ, B, E, δ
ACCURACY = 0.05  # asked of the peer, whose time grows fast with it


def main() -> None:
    """Print the table."""
    table = Table("σ", "B", "E", "δ", "ours", "s", "PLD_accounting", "s", "time, theirs/ours")
    account(RandomAllocation(3.0, 100, 50, relation=Relation.ADD_REMOVE), 1e-5)  # imports are nobody's time
    for sigma, batches, epochs, delta in CASES:
        start = time.perf_counter()
        ours = account(RandomAllocation(sigma, batches * epochs, batches, relation=Relation.ADD_REMOVE), delta)
        mine = time.perf_counter() - start
        start = time.perf_counter()
        sizes = {"num_steps": batches, "num_epochs": epochs, "epsilon_accuracy": ACCURACY}
        up, low = gaussian_allocation_epsilon_range(delta=delta, sigma=sigma, **sizes)
        theirs = time.perf_counter() - start
        if max(ours.low, low) > min(ours.up, up):
            raise SystemExit(f"the bands {ours} and {low} to {up} do not overlap: one of them is wrong")
        cells = [f"{ours:.4g}", f"{mine:.2f}", f"{low:.4g} to {up:.4g}", f"{theirs:.2f}", f"{theirs / mine:.0f}"]
        table.add_row(f"{sigma:g}", str(batches), str(epochs), f"{delta:g}", *cells)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
