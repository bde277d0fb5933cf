"""``elementdp histogram`` against DuckDB's and Polars' own group-by with clipping, which promises nothing.

All three read the same Parquet file, group by (user, domain, page), clip each (user, domain) to an l2 norm and add up
by page; ours also discovers the items, chooses the bound, and adds noise, all privately. The peers take the host for
the domain, which is less work. Each runs in a process of its own; wall-clock and processor seconds and the peak of
memory are printed, and ratios to the peers. The bar is 1.3 times the time of either and half of the memory.

    python benchmarks/histogram_peers.py                    # 10 million events
    python benchmarks/histogram_peers.py --events 1000000
"""

import argparse
import sys
import tempfile
from pathlib import Path

from histogram_command import Run, elementdp, make_events, measure, row, version

RHO = 4.0
HOST = "^https?://([^/]+)"


def duckdb_group_by(path: str) -> None:
    """Group, clip and add up in one query."""
    import duckdb

    query = f"""
        with pairs as (
            select user_id, regexp_extract(url, '{HOST}', 1) as host, url, count(*) as n
            from read_parquet('{path}') group by all
        ), clipped as (
            select url, n * least(1, {RHO} / sqrt(sum(n * n) over (partition by user_id, host))) as kept from pairs
        )
        select url, sum(kept) from clipped group by url
    """
    print(len(duckdb.sql(query).fetchall()))


def polars_group_by(path: str) -> None:
    """The same, lazily and streaming."""
    import polars as pl

    norm = (pl.col("n") ** 2).sum().over("user_id", "host").sqrt()
    result = (
        pl.scan_parquet(path)
        .with_columns(host=pl.col("url").str.extract(HOST))
        .group_by("user_id", "host", "url")
        .agg(n=pl.len().cast(pl.Float64))
        .with_columns(kept=pl.col("n") * pl.min_horizontal(pl.lit(1.0), RHO / norm))
        .group_by("url")
        .agg(pl.col("kept").sum())
        .collect(engine="streaming")
    )
    print(len(result))


PEERS = {"duckdb": duckdb_group_by, "polars": polars_group_by}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--peer", nargs=2, help=argparse.SUPPRESS)  # the child process of a comparison
    given = parser.parse_args()
    if given.peer is not None:
        return PEERS[given.peer[0]](given.peer[1])
    runs: dict[str, Run] = {}
    with tempfile.TemporaryDirectory() as folder:
        events = Path(folder, "events.parquet")
        make_events(events, given.events, given.seed)
        print(f"{'':24}{'events':>12}{'seconds':>10}{'CPU s':>10}{'peak MiB':>10}")
        for name in PEERS:
            runs[name] = measure([sys.executable, __file__, "--peer", name, str(events)])
            row(f"{name} {version(name)}", given.events, runs[name])
        ours = elementdp(events, Path(folder, "histogram.csv"))
        row("elementdp histogram", given.events, ours)
    for name, run in runs.items():
        times = f"{ours.seconds / run.seconds:.2f} of the time, {ours.cpu / run.cpu:.2f} of the processor time"
        print(f"to {name}: {times}, {ours.peak / run.peak:.2f} of the memory")
    return None


if __name__ == "__main__":
    main()
