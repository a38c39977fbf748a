"""Every documented policy over sizes and storages, as far as kernels: of CUDA
by ss-import and ss-compile, of the CPU by ss-import and ss-opt, up to LLVM's
dialect. Prints how many went through, and for the others by policy how many and
what the tool said.

    sweep_policies.py cuda|cpu config.json folder
"""
import collections
import concurrent.futures
import json
import pathlib
import subprocess
import sys

POLICIES = ["fixed:1", "fixed:8", "fixed:16", "fixed:24", "fixed:32", "fixed:48", "fixed:64",
            "sink:1", "sink:16", "sink:32", "relative:0.03", "energy:0.999", "budget:65536"]
# dv x dk of all layer types; the model's own are 128 x 128 and 80 x 128.
SIZES = {"cuda": [None, (64, 128), (80, 128), (160, 192), (256, 256), (384, 256)],
         "cpu": [None, (256, 256)]}  # has no limit of scratch, and takes longer
# Of gdn, kda and mamba2 one each.
STORAGES = ["f32", "fp8+kda=f16+mamba2=bf16"]
# The largest blocks of both cores where a policy leaves them open.
WIDE = ["--active=32", "--buffer=32"]
PRESETS = ["Nemotron-3-Super-120B", "Kimi-K3"]


def resized(config, size):
    config = json.loads(json.dumps(config))
    for kind, value, key in [("gdn", "head_v_dim", "head_k_dim"),
                             ("kda", "head_v_dim", "head_k_dim"),
                             ("mamba2", "head_dim", "state_size")]:
        if size:
            config[kind][value], config[kind][key] = size
    return config


def list_cases(config, folder, target):
    for size in SIZES[target]:
        name = "x".join(map(str, size)) if size else "model"
        path = folder / f"{name}.json"
        path.write_text(json.dumps(resized(config, size)))
        for policy in POLICIES:
            for storage in STORAGES:
                yield policy, storage, [str(path)]
            if policy == "relative:0.03":
                for core in ("svd", "qr"):
                    yield policy, "f32", [str(path), f"--core={core}", *WIDE]
            elif policy == "fixed:32":
                yield policy, "f32", [str(path), "--core=qr"]
    for preset in PRESETS:
        for policy in ("fixed:8", "fixed:16", "fixed:32", "sink:32"):
            yield policy, "f32", [f"--preset={preset}"]


def try_case(number, target, folder, case):
    policy, storage, arguments = case
    graph = folder / f"{number}.mlir"
    back_end = {
        "cuda": ["ss-compile", str(graph), "-o", str(folder / f"{number}.sspkg"), "--no-cpu"],
        "cpu": ["ss-opt", str(graph), "--ss-pipeline=device=cpu", "--convert-ssk-to-llvm",
                "-o", "/dev/null"],
    }[target]
    imports = ["ss-import", *arguments, f"--policy={policy}", f"--storage={storage}",
               "-o", str(graph)]
    for command in (imports, back_end):
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode:
            said = [line.replace(str(graph), "graph") for line in run.stderr.splitlines()
                    if "could not be lowered to kernels" not in line]
            return f"{policy}: " + " // ".join(said)
    return None


def main():
    target, config, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    folder.mkdir(parents=True, exist_ok=True)
    cases = list(list_cases(json.loads(pathlib.Path(config).read_text()), folder, target))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        failed = [line for line in pool.map(
            lambda numbered: try_case(numbered[0], target, folder, numbered[1]),
            enumerate(cases)) if line]
    for line, count in sorted(collections.Counter(failed).items()):
        print(f"{count} of {line}")
    print(f"{len(cases) - len(failed)} of {len(cases)} have kernels")


main()
