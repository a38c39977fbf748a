"""Copies a safetensors file with a NaN as the first element of a float32 tensor:
not_finite.py FROM TENSOR TO"""
import json
import struct
import sys

source, tensor, target = sys.argv[1:]
with open(source, "rb") as file:
    data = bytearray(file.read())
(length,) = struct.unpack("<Q", data[:8])
entry = json.loads(data[8:8 + length])[tensor]
assert entry["dtype"] == "F32", entry
begin = 8 + length + entry["data_offsets"][0]
data[begin:begin + 4] = struct.pack("<f", float("nan"))
with open(target, "wb") as file:
    file.write(data)
