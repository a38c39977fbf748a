//===- main.cpp - A small engine around a kernel package ------------------===//
//
// Decodes a text with the states of a package made by ss-compile. Links the
// runtime alone: this is what an inference engine that ships no compiler does.
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"
#include "EngineBackend.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

using namespace tiny_hybrid;

namespace {

struct Arguments {
  std::string model, package, text;
  int tokens = 0;
  ss_device_kind device = SS_DEVICE_CPU;
};

int fail(const std::string &message) {
  std::fprintf(stderr, "tiny-hybrid: %s\n", message.c_str());
  return EXIT_FAILURE;
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
    return fail(model.error());
  std::ifstream stream(arguments.text, std::ios::binary);
  std::vector<uint8_t> text{std::istreambuf_iterator<char>(stream), {}};
  if (!stream.is_open() || text.size() < size_t(arguments.tokens) + 1)
    return fail(arguments.text + ": found " + std::to_string(text.size()) +
                " readable bytes, expected at least " +
                std::to_string(arguments.tokens + 1));
  auto states = openStates(arguments.package, arguments.device, model->config);
  if (!states)
    return fail(states.error());

  Decoder decoder(*model, **states, /*batch=*/1, /*threads=*/1);
  double bits = 0;
  for (int t = 0; t < arguments.tokens; ++t) {
    if (Status status = decoder.step({&text[t], 1}))
      return fail(status->message);
    bits += bitsOf(decoder.logits(), text[t + 1]);
  }
  Result<ss_statistics> statistics = (*states)->statistics();
  if (!statistics)
    return fail(statistics.error());
  std::printf("bits per byte %.4f, state bytes %lld, dense %lld\n",
              bits / arguments.tokens,
              static_cast<long long>(statistics->live_bytes),
              static_cast<long long>(statistics->dense_bytes));
  return EXIT_SUCCESS;
}

} // namespace

int main(int argc, char **argv) {
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
    return fail("expected MODEL_FOLDER PACKAGE_FOLDER TEXT_FILE TOKENS [cuda], "
                "with TOKENS at least 1");
  return run(arguments);
}
