//===- ss-kernels.cpp - What printed kernels take of a GPU ----------------===//

#include "Measure.h"

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>

using namespace ss_kernels;

namespace {

const char *const kHelp =
    R"(ss-kernels: compiles printed kernels with NVRTC and keeps what they take

Usage: ss-kernels resources FOLDER [--check]

Compiles every .cu file of FOLDER for sm_80, sm_90a, sm_100 and sm_120 and
writes FOLDER/resources.json: registers, bytes spilled, bytes of stack and of
shared memory. --check: compares with the file that is there. The NVRTC that
wrote it has to give the same numbers; another one may take an eighth and 8
registers more and spill only where the first did, at most twice as much.

Exit codes
  0   done
  1   the numbers differ, or a kernel does not compile
  2   the command line is wrong
  77  NVRTC is not on this machine: nothing was compared or written
)";

constexpr int kDone = 0, kDiffers = 1, kUsage = 2, kSkipped = 77;

int fail(const std::string &message) {
  std::fprintf(stderr, "ss-kernels: %s\n", message.c_str());
  return kDiffers;
}

/// What was printed has to have arrived.
int finish(int code) {
  if (std::fflush(stdout) == 0 && !std::ferror(stdout))
    return code;
  return fail("the standard output cannot be written");
}

int check(const std::string &path, const ResourceTable &found) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  auto recorded = ResourceTable::parse(text);
  if (!recorded)
    return fail(path + ": " + recorded.error());
  const std::vector<std::string> differences = compare(*recorded, found);
  for (const std::string &line : differences)
    std::fprintf(stderr, "ss-kernels: %s\n", line.c_str());
  if (!differences.empty())
    return fail("the kernels take something else than " + path +
                " says: run scripts/regenerate-kernels.sh and look at the "
                "difference");
  std::printf("%zu kernels take what %s says (NVRTC %s, recorded by %s)\n",
              found.kernels.size(), path.c_str(), found.nvrtc.c_str(),
              recorded->nvrtc.c_str());
  return finish(kDone);
}

} // namespace

int main(int argc, char **argv) {
  if (argc == 2 && std::strcmp(argv[1], "--help") == 0) {
    std::fputs(kHelp, stdout);
    return finish(kDone);
  }
  const bool checks = argc == 4 && std::strcmp(argv[3], "--check") == 0;
  if ((argc != 3 && !checks) || std::strcmp(argv[1], "resources") != 0) {
    std::fprintf(stderr, "ss-kernels: expected: ss-kernels resources FOLDER "
                         "[--check], or --help\n");
    return kUsage;
  }
  if (std::string reason = nvrtcUnavailable(); !reason.empty()) {
    std::fprintf(stderr, "ss-kernels: skipped: %s\n", reason.c_str());
    return kSkipped;
  }
  const std::string folder = argv[2], path = folder + "/resources.json";
  auto found = measure(folder, {"sm_80", "sm_90a", "sm_100", "sm_120"});
  if (!found)
    return fail(found.error());
  if (checks)
    return check(path, *found);
  std::ofstream file(path, std::ios::binary);
  file << found->print();
  if (!file.flush())
    return fail("'" + path + "' cannot be written");
  return kDone;
}
