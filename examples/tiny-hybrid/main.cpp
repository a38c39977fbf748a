//===- main.cpp - A small engine around a kernel package ------------------===//
//
// Decodes a text with the states of a package made by ss-compile. Links the
// runtime alone: this is what an inference engine that ships no compiler does.
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"
#include "EngineBackend.h"
#include "StandardOutput.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

using namespace tiny_hybrid;

namespace {

struct Arguments {
  std::string model, package, text;
  int tokens = 0;
  ss_device_kind device = SS_DEVICE_CPU;
};

constexpr const char *kUsage =
    "MODEL_FOLDER PACKAGE_FOLDER TEXT_FILE TOKENS [cuda], with TOKENS at least "
    "1";
constexpr int kNoDevice = 3; ///< as ss-run's exit codes

int fail(const Error &error) {
  std::fprintf(stderr, "tiny-hybrid: %s\n", error.message.c_str());
  return error.deviceMissing ? kNoDevice : EXIT_FAILURE;
}

Result<std::unique_ptr<EngineBackend>> openStates(const std::string &folder,
                                                  ss_device_kind device,
                                                  const Config &config) {
  ss_package *package = nullptr;
  if (ss_package_open(folder.c_str(), &package) != SS_OK)
    return Error{ss_last_error()};
  ss_engine_options options;
  ss_engine_options_init(&options);
  options.threads = 1;
  options.device = device;
  auto backend = EngineBackend::create(package, options, config, /*batch=*/1);
  ss_package_close(package);
  return backend;
}

Result<std::vector<uint8_t>> readText(const std::string &path, size_t bytes) {
  std::error_code problem;
  const uintmax_t size = std::filesystem::file_size(path, problem);
  if (problem)
    return Error{path + ": cannot read: " + problem.message() +
                 ", expected a text"};
  std::vector<uint8_t> text(size < bytes ? 0 : bytes);
  std::ifstream stream(path, std::ios::binary);
  stream.read(reinterpret_cast<char *>(text.data()),
              std::streamsize(text.size()));
  if (size < bytes || size_t(stream.gcount()) < bytes)
    return Error{path + ": found " + std::to_string(size) +
                 " bytes, or no permission to read them, expected at least " +
                 std::to_string(bytes)};
  return text;
}

/// -log2 of the probability that the logits give to the next byte.
double bitsOf(const Matrix &logits, uint8_t next) {
  const double largest = logits.maxCoeff();
  double sum = 0;
  for (Eigen::Index i = 0; i < logits.cols(); ++i)
    sum += std::exp(logits(0, i) - largest);
  return (std::log(sum) - (logits(0, next) - largest)) / std::log(2.0);
}

int run(const Arguments &arguments) {
  Result<Model> model = Model::load(arguments.model);
  if (!model)
    return fail(model.takeError());
  Result<std::vector<uint8_t>> text =
      readText(arguments.text, size_t(arguments.tokens) + 1);
  if (!text)
    return fail(text.takeError());
  auto states = openStates(arguments.package, arguments.device, model->config);
  if (!states)
    return fail(states.takeError());

  Decoder decoder(*model, **states, /*batch=*/1, /*threads=*/1);
  double bits = 0;
  for (int t = 0; t < arguments.tokens; ++t) {
    if (Status status = decoder.step({&(*text)[t], 1}))
      return fail(*status);
    bits += bitsOf(decoder.logits(), (*text)[t + 1]);
  }
  Result<ss_statistics> statistics = (*states)->statistics();
  if (!statistics)
    return fail(statistics.takeError());
  std::printf("bits per byte %.4f, state bytes %lld, dense %lld\n",
              bits / arguments.tokens,
              static_cast<long long>(statistics->live_bytes),
              static_cast<long long>(statistics->dense_bytes));
  if (Status status = finishStandardOutput())
    return fail(*status);
  return EXIT_SUCCESS;
}

} // namespace

int main(int argc, char **argv) {
  if (argc == 2 && std::string(argv[1]) == "--help") {
    std::printf("usage: tiny-hybrid %s\n", kUsage);
    return EXIT_SUCCESS;
  }
  Arguments arguments;
  char *end = nullptr;
  const bool onGpu = argc == 6 && std::string(argv[5]) == "cuda";
  if (argc == 5 || onGpu) {
    const long tokens = std::strtol(argv[4], &end, 10);
    if (*argv[4] && !*end && tokens >= 1 && tokens <= 1 << 30)
      arguments = {argv[1], argv[2], argv[3], static_cast<int>(tokens),
                   onGpu ? SS_DEVICE_CUDA : SS_DEVICE_CPU};
  }
  if (!arguments.tokens)
    return fail({"found " + std::to_string(argc - 1) +
                 " arguments, or one that is wrong; expected " + kUsage});
  return run(arguments);
}
