"""Prints an ss.model of COUNT layers that cycle through gdn, mamba2 and kda.

usage: make_model.py COUNT [BUFFERS]   BUFFERS: "8,12,16" gives the layers these in turn
"""
import sys

SIZES = {
    "gdn": "heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus>",
    "mamba2": "heads 4 key_heads 1 dv 80 dk 128 gate #ss.gate<softplus>",
    "kda": "heads 2 key_heads 2 dv 128 dk 128 gate #ss.gate<softplus_channel>",
}


def main(count, buffers):
    types = list(SIZES)
    print("ss.model @many {")
    for i in range(count):
        kind = types[i % len(types)]
        print(f"  ss.layer @layer{i} type {kind} index {i} {SIZES[kind]} norm #ss.norm<none>"
              f" query_scale 1.0 policy #ss.policy<relative, {(i + 1) / 1000}> active 8"
              f" buffer {buffers[i % len(buffers)]} storage f32 form factored")
    print("}")


if __name__ == "__main__":
    main(int(sys.argv[1]), [int(text) for text in (sys.argv[2:] or ["8"])[0].split(",")])
