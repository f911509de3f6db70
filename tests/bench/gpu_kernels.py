"""Prints the kernels of a plain token with the times of ncu: python gpu_kernels.py kernels.csv (see gpu.sh)."""
import collections
import csv
import sys

rows = list(csv.DictReader(line for line in open(sys.argv[1]) if line.startswith('"')))
took, read, launches = (collections.defaultdict(list) for _ in range(3))
for row in rows:
    key = row["Kernel Name"].split("(")[0][:60], row["Grid Size"]
    value = float(row["Metric Value"].replace(",", ""))
    value *= {"us": 1, "ns": 1e-3, "ms": 1e3, "byte": 1e-6, "Kbyte": 1e-3, "Mbyte": 1, "Gbyte": 1e3}.get(row["Metric Unit"], 1)
    {"gpu__time_duration.sum": took, "dram__bytes_read.sum": read}.get(row["Metric Name"], launches)[key].append(value)
print("kernel, grid, launches, microseconds (median), MB from memory (median), TB/s")
for key, times in sorted(took.items(), key=lambda kv: -sum(kv[1])):
    us, mb = sorted(times)[len(times) // 2], sorted(read[key] or [0])[len(read[key]) // 2]
    print(f"{key[0]:60} {key[1]:18} {len(times):4} {us:8.2f} {mb:9.2f} {mb / us:6.2f}")
