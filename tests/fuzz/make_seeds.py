"""Make the seeds for families in corpus/config and corpus/gguf from the golden models (tests/golden/make_families.py):
a folder's config.json as it is, and a GGUF file with its keys and the names of its tensors, where all sizes are
divided by eight, there are two layers, and the weights are zeros. Files longer than the limit of tests/fuzz/run.sh
are left out. Run it from anywhere, with gguf 0.19.0 and numpy installed:

    python tests/fuzz/make_seeds.py
"""
import json, pathlib
import gguf
import numpy as np

HERE = pathlib.Path(__file__).parent
LOGITS = HERE.parent / "golden" / "logits"
LAYERS, LONGEST = 2, 8192
SIZES = ["context_length", "embedding_length", "feed_forward_length", "key_length", "value_length", "dimension_count"]


def smaller(n): return (n + 4) // 8


def value_of(key, value):
    if key.endswith("block_count"): return LAYERS
    if isinstance(value, list): return value[:LAYERS]
    return smaller(value) if any(key.endswith(size) for size in SIZES) else value


def make_file(path):
    reader = gguf.GGUFReader(path)
    arch = reader.fields["general.architecture"].contents()
    to = HERE / "corpus" / "gguf" / path.parent.name.removeprefix("gguf_")
    writer = gguf.GGUFWriter(to, arch)
    for key, field in reader.fields.items():
        if key.startswith(arch + "."):
            writer.add_key_value(key, value_of(key, field.contents()), field.types[0], field.types[1] if len(field.types) > 1 else None)
    for tensor in reader.tensors:
        if any(tensor.name.startswith(f"blk.{i}.") for i in range(LAYERS, 64)): continue
        writer.add_tensor(tensor.name, np.zeros([smaller(int(n)) for n in reversed(tensor.shape)], np.float16))
    writer.write_header_to_file(), writer.write_kv_data_to_file(), writer.write_tensors_to_file(), writer.close()
    if to.stat().st_size > LONGEST: to.unlink()


def main():
    for path in sorted(LOGITS.glob("*/golden.json")):
        config = json.loads(path.read_text()).get("config")
        if config: (HERE / "corpus" / "config" / path.parent.name).write_text(json.dumps(config) + "\n")
    for path in sorted(LOGITS.glob("gguf_*/model.gguf")): make_file(path)


if __name__ == "__main__": main()
