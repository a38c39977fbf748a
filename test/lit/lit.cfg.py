# The lit suite. Substitutions beside lit's own:
#   %src     the root of the source tree
#   %tools   the folder of the project's tools
#   %python  the python that runs lit
import ctypes.util
import os
import sys

import lit.formats

config.name = "SinkState"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.ss_build_root, "test", "lit")
config.environment["PATH"] = os.path.pathsep.join(
    [config.ss_tools_dir, config.llvm_tools_dir, os.environ.get("PATH", "")])

# lit hides the environment from tests; these are what the tools may need.
for name in ("CUDA_HOME", "HOME", "XDG_CACHE_HOME"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

config.substitutions.append(("%src", config.ss_source_root))
config.substitutions.append(("%tools", config.ss_tools_dir))
config.substitutions.append(("%python", sys.executable))

if os.path.exists("/usr/local/cuda/lib64/libnvrtc.so") or ctypes.util.find_library("nvrtc"):
    config.available_features.add("nvrtc")
if os.path.exists("/dev/full"):
    config.available_features.add("dev-full")
if os.path.exists("/dev/nvidia0"):
    config.available_features.add("gpu")
for tool in ("ss-opt", "ss-translate", "ss-import", "ss-compile", "ss-run",
             "ss-run-packages", "ss-kernels", "ss-cache", "ss-bench",
             "ss-bench-packages", "ss-lsp-server", "ss-reduce", "tiny-hybrid"):
    if os.path.exists(os.path.join(config.ss_tools_dir, tool)):
        config.available_features.add(tool)
