"""``elementdp histogram`` on JSON lines against the same events as CSV: the bar is 1.5 times the time.

python benchmarks/histogram_formats.py                    # 2 million events
python benchmarks/histogram_formats.py --events 100000
"""

import argparse
import json
import tempfile
from pathlib import Path

import pyarrow.csv as pc
import pyarrow.parquet as pq
from histogram_command import elementdp, make_events, row

MOST = 1.5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=2_000_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        parquet, csv, lines = (Path(folder, f"events.{form}") for form in ("parquet", "csv", "jsonl"))
        make_events(parquet, given.events, given.seed)
        table = pq.read_table(parquet)
        pc.write_csv(table, csv)
        with lines.open("w") as stream:
            for batch in table.to_batches():
                stream.writelines(json.dumps(event) + "\n" for event in batch.to_pylist())
        runs = {path.suffix: elementdp(path, Path(folder, "histogram.csv")) for path in (csv, lines)}
    print(f"{'':24}{'events':>12}{'seconds':>10}{'CPU s':>10}{'peak MiB':>10}")
    for suffix, run in runs.items():
        row(suffix, given.events, run)
    ratio = runs[".jsonl"].seconds / runs[".csv"].seconds
    print(f"JSON lines take {ratio:.2f} of the time of CSV (bar {MOST})")
    if ratio > MOST:
        raise SystemExit("the bar is missed")


if __name__ == "__main__":
    main()
