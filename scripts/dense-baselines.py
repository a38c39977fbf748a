#!/usr/bin/env python3
"""Times the dense decode kernels that people use today, per layer and step.

    scripts/dense-baselines.py [--wheels DIR] [--site DIR] [--batch 1,8,32,128,512]
                               [--kernels NAME,...] --json FILE

Needs a CUDA GPU, PyTorch and Triton. `ss-bench --baselines FILE` reads FILE and
prints ratios. Kernels: mamba_ssm (selective_state_update), fla_gdn
(fused_recurrent_gated_delta_rule), fla_kda (fused_recurrent_kda), flashinfer_gdn
(gated_delta_rule_decode_pretranspose). --wheels DIR: packages that are not
installed are taken from the wheels and source archives there, unpacked and not
installed, so that nothing they depend on is needed but what is imported; `pip
download --no-deps flash-linear-attention fla-core mamba-ssm einops` fills DIR.
--site DIR: the same from packages unpacked already. Of mamba-ssm only its Triton files are imported. A
kernel that cannot be had has a line that says why; the exit code is then 0, and
1 only where no GPU is there or an argument is wrong.

Timing: median of replays of a CUDA graph that goes through several states, which
together exceed the L2 several times.
"""
import argparse
import glob
import importlib
import importlib.metadata
import json
import os
import re
import sys
import tarfile
import tempfile
import types
import zipfile

WARM_UP_MS, REPEAT_MS = 20, 100
ROTATED_BYTES = 256 << 20

# type, heads, key heads, dv, dk of the layers that are timed
MAMBA2_SHAPES = [(96, 8, 80, 128), (64, 8, 64, 128)]
GDN_SHAPES = [(32, 16, 128, 128)]
KDA_SHAPES = [(32, 32, 128, 128)]
KERNELS = ["mamba_ssm", "fla_gdn", "fla_kda", "flashinfer_gdn"]


class Missing(Exception):
    """A kernel cannot be run here; the text says why."""


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheels", help="a folder of wheels for what is not installed")
    parser.add_argument("--site", help="a folder of unpacked packages")
    parser.add_argument("--batch", default="1,8,32,128,512")
    parser.add_argument("--kernels", default=",".join(KERNELS))
    parser.add_argument("--json", required=True, help="the file to write, a JSON object a line")
    arguments = parser.parse_args()
    try:
        arguments.batches = [int(batch) for batch in arguments.batch.split(",")]
    except ValueError:
        parser.error(f"--batch {arguments.batch}: expected numbers with commas")
    if min(arguments.batches) < 1:
        parser.error(f"--batch {arguments.batch}: expected at least 1 each")
    arguments.kernels = arguments.kernels.split(",")
    for kernel in arguments.kernels:
        if kernel not in KERNELS:
            parser.error(f"kernel '{kernel}', expected of {', '.join(KERNELS)}")
    for folder in (arguments.wheels, arguments.site):
        if folder and not os.path.isdir(folder):
            parser.error(f"{folder}: expected a folder")
    return arguments


def unpack_wheels(folder, site):
    """Unpacks packages that are not installed; returns the versions by distribution."""
    versions = {}
    for path in sorted(glob.glob(os.path.join(folder, "*.whl")) + glob.glob(os.path.join(folder, "*.tar.gz"))):
        found = re.match(r"(.+?)-(\d[^-]*?)(-.*)?(\.whl|\.tar\.gz)$", os.path.basename(path))
        if not found:
            sys.exit(f"dense-baselines.py: {path}: expected NAME-VERSION in a wheel's or archive's name")
        name = re.sub(r"[-_.]+", "-", found.group(1)).lower()
        if installed_version(name):
            continue
        if path.endswith(".whl"):
            with zipfile.ZipFile(path) as archive:
                archive.extractall(site)
        else:
            unpack_archive(path, site)
        versions[name] = found.group(2)
    return versions


def unpack_archive(path, site):
    """A source archive without its outermost folder."""
    with tarfile.open(path) as archive:
        for member in archive.getmembers():
            member.name = member.name.partition("/")[2]
            if member.name and (member.isfile() or member.isdir()):
                archive.extract(member, site, filter="data")


def installed_version(distribution):
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def version_of(distribution, unpacked):
    """Of the installed package, the unpacked one, or 'unknown' (a source tree)."""
    return installed_version(distribution) or unpacked.get(distribution, "unknown")


def skip_initialisers(*names):
    """Imports submodules without their packages' __init__, which load compiled code."""
    for name in names:
        for entry in sys.path:
            path = os.path.join(entry, *name.split("."))
            if os.path.isdir(path) and name not in sys.modules:
                module = types.ModuleType(name)
                module.__path__ = [path]
                sys.modules[name] = module


def load(module, attribute):
    try:
        return getattr(importlib.import_module(module), attribute)
    except Exception as error:  # whatever an import runs into
        raise Missing(f"{module}.{attribute}: {type(error).__name__}: {error}".splitlines()[0][:200]) from error


class Timer:
    """States in turn, in a graph, so that none is found in the L2."""

    def __init__(self, torch, do_bench):
        self.torch, self.do_bench = torch, do_bench

    def states(self, *shape):
        floats = 1
        for size in shape:
            floats *= size
        count = max(1, -(-ROTATED_BYTES // (4 * floats)))
        return [self.torch.randn(*shape, device="cuda") * 0.1 for _ in range(count)]

    def microseconds(self, run, states):
        torch = self.torch
        with torch.no_grad():
            run(states[0])
            torch.cuda.synchronize()
            calls = states * max(1, 10 // len(states))
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                for state in calls:
                    run(state)
            time = self.do_bench(graph.replay, warmup=WARM_UP_MS, rep=REPEAT_MS, return_mode="median")
        return time * 1e3 / len(calls)


def random_inputs(torch, *shapes):
    return [torch.randn(*shape, device="cuda", dtype=torch.bfloat16) for shape in shapes]


def mamba_ssm(torch, timer, batch, shape):
    skip_initialisers("mamba_ssm", "mamba_ssm.ops", "mamba_ssm.ops.triton")
    update = load("mamba_ssm.ops.triton.selective_state_update", "selective_state_update")
    heads, groups, dv, dk = shape
    x, b, c, dt = random_inputs(torch, (batch, heads, dv), (batch, groups, dk), (batch, groups, dk), (batch, heads))
    dt = dt[..., None].expand(batch, heads, dv)
    a = (-torch.rand(heads, device="cuda"))[:, None, None].expand(heads, dv, dk)
    d, bias = (torch.randn(heads, device="cuda")[:, None].expand(heads, dv) for _ in range(2))
    run = lambda state: update(state, x, dt, a, b, c, D=d, dt_bias=bias, dt_softplus=True)
    return timer.microseconds(run, timer.states(batch, heads, dv, dk))


def fla(torch, timer, batch, shape, function, channel_gate):
    heads, key_heads, dv, dk = shape
    logsigmoid = torch.nn.functional.logsigmoid
    q, k, v = random_inputs(torch, (batch, 1, key_heads, dk), (batch, 1, key_heads, dk), (batch, 1, heads, dv))
    gate = logsigmoid(torch.randn(batch, 1, heads, *([dk] if channel_gate else []), device="cuda"))
    beta = torch.rand(batch, 1, heads, device="cuda", dtype=torch.bfloat16)
    run = lambda state: function(q, k, v, g=gate, beta=beta, initial_state=state, output_final_state=True,
                                 use_qk_l2norm_in_kernel=True)
    return timer.microseconds(run, timer.states(batch, heads, dk, dv))


def fla_gdn(torch, timer, batch, shape):
    return fla(torch, timer, batch, shape, load("fla.ops.gated_delta_rule", "fused_recurrent_gated_delta_rule"), False)


def fla_kda(torch, timer, batch, shape):
    return fla(torch, timer, batch, shape, load("fla.ops.kda", "fused_recurrent_kda"), True)


def flashinfer_gdn(torch, timer, batch, shape):
    decode = load("flashinfer.gdn_decode", "gated_delta_rule_decode_pretranspose")
    heads, key_heads, dv, dk = shape
    q, k, v, a, b = random_inputs(torch, (batch, 1, key_heads, dk), (batch, 1, key_heads, dk), (batch, 1, heads, dv),
                                  (batch, 1, heads), (batch, 1, heads))
    a_log, bias = (torch.randn(heads, device="cuda") for _ in range(2))
    run = lambda state: decode(q, k, v, state, a_log, a, bias, b, scale=dk ** -0.5, use_qk_l2norm=True)
    return timer.microseconds(run, timer.states(batch, heads, dv, dk))


# function, layer type, distribution, shapes
TABLE = {
    "mamba_ssm": (mamba_ssm, "mamba2", "mamba-ssm", MAMBA2_SHAPES),
    "fla_gdn": (fla_gdn, "gdn", "flash-linear-attention", GDN_SHAPES),
    "fla_kda": (fla_kda, "kda", "flash-linear-attention", KDA_SHAPES),
    "flashinfer_gdn": (flashinfer_gdn, "gdn", "flashinfer-python", GDN_SHAPES),
}


def measure(kernel, torch, timer, batches, unpacked, write):
    function, layer_type, distribution, shapes = TABLE[kernel]
    for shape in shapes:
        heads, key_heads, dv, dk = shape
        for batch in batches:
            try:
                time = function(torch, timer, batch, shape)
            except Missing as reason:
                write(kernel=kernel, missing=str(reason))
                return
            except Exception as error:  # one size that does not work leaves the others
                text = str(error).splitlines()
                write(kernel=f"{kernel} B={batch}", missing=f"{type(error).__name__}: {text[0][:200] if text else ''}")
                continue
            finally:
                torch.cuda.empty_cache()
            write(kernel=kernel, version=version_of(distribution, unpacked), type=layer_type, heads=heads,
                  key_heads=key_heads, dv=dv, dk=dk, batch=batch, state="f32", us=round(time, 3),
                  gb_s=round(2 * 4 * batch * heads * dv * dk / time / 1e3, 1))


def driver_version():
    try:
        with open("/proc/driver/nvidia/version", encoding="ascii", errors="replace") as file:
            found = re.search(r"\d+\.\d+(\.\d+)?", file.readline())
            return found.group() if found else "unknown"
    except OSError:
        return "unknown"


def copy_bandwidth(torch, do_bench):
    source = torch.empty(1 << 29, device="cuda")
    target = torch.empty_like(source)
    time = do_bench(lambda: target.copy_(source), return_mode="median")
    return 2 * source.numel() * 4 / time / 1e6


def main():
    arguments = parse_arguments()
    unpacked = {}
    with tempfile.TemporaryDirectory() as site:
        if arguments.wheels:
            unpacked = unpack_wheels(arguments.wheels, site)
            sys.path.append(site)
        if arguments.site:
            sys.path.append(arguments.site)
        try:
            import torch
            import triton
            from triton.testing import do_bench
        except ImportError as error:
            sys.exit(f"dense-baselines.py: {error}: expected PyTorch and Triton, install them first")
        if not torch.cuda.is_available():
            sys.exit("dense-baselines.py: PyTorch finds no CUDA GPU, expected one")
        torch.manual_seed(0)
        with open(arguments.json, "w", encoding="utf-8") as file:
            def write(**line):
                for stream in (file, sys.stdout):
                    print(json.dumps(line), file=stream, flush=True)

            write(gpu=torch.cuda.get_device_name(), driver=driver_version(), torch=torch.__version__,
                  triton=triton.__version__, copy_gb_s=round(copy_bandwidth(torch, do_bench), 1))
            torch.cuda.empty_cache()
            timer = Timer(torch, do_bench)
            for kernel in arguments.kernels:
                measure(kernel, torch, timer, arguments.batches, unpacked, write)


if __name__ == "__main__":
    main()
