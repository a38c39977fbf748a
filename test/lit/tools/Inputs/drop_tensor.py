"""Copies a safetensors file without one of its tensors.

usage: drop_tensor.py FROM NAME TO
"""
import json
import struct
import sys

source, name, target = sys.argv[1:]
with open(source, "rb") as file:
    size, = struct.unpack("<Q", file.read(8))
    header = json.loads(file.read(size))
    data = file.read()
begin, end = header.pop(name)["data_offsets"]
for tensor in header.values():
    tensor["data_offsets"] = [at - (end - begin) if at > begin else at for at in tensor["data_offsets"]]
text = json.dumps(header).encode()
with open(target, "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text + data[:begin] + data[end:])
