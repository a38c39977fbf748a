//===- InitReport.cpp - What ss-bench init says ---------------------------===//

#include "InitBench.h"

#include <nlohmann/json.hpp>

#include <cstdarg>
#include <cstdio>

using namespace ss_bench;

namespace {

__attribute__((format(printf, 2, 3))) void append(std::string &text,
                                                  const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  char line[1024];
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  text += line;
}

} // namespace

std::string ss_bench::formatInit(const InitResult &r) {
  std::string text;
  append(text, "%s; %s, layer %s of %d x %d, profile %s, eps %g\n\n",
         r.device.c_str(), r.package.c_str(), r.layer.c_str(), r.dv, r.dk,
         r.profile.c_str(), r.eps);
  if (r.copyBandwidth > 0)
    append(text, "copies: %.2f TB/s; reading the states once at that rate: "
                 "%.2f ms\n\n",
           r.copyBandwidth * 1e-12, r.readBytes / r.copyBandwidth * 1e3);
  text += "| states | at a time | ms | ns a state | share of copies | mean "
          "rank | dense | checked | weights off by | error over bound | right "
          "|\n|---|---|---|---|---|---|---|---|---|---|---|\n";
  append(text,
         "| %lld | %lld | %.2f | %.1f | %.1f %% | %.1f | %.1f %% | %lld | "
         "%.1e | %.3f | %s |\n",
         (long long)(r.states), (long long)(r.chunk), r.milliseconds,
         r.milliseconds * 1e6 / double(r.states), 100 * r.shareOfCopy(),
         r.meanRank, 100 * r.denseShare, (long long)(r.checked), r.weightError,
         r.boundShare, r.isCorrect() ? "yes" : "**no**");
  append(text,
         "\nof the checked states, %lld have a rank that is not the matrix's; "
         "%lld are left to exact SVDs\n",
         (long long)(r.wrongRanks), (long long)(r.leftOver));
  if (!r.noSolver.empty())
    append(text, "\ncuSOLVER: %s\n", r.noSolver.c_str());
  else
    append(text,
           "\ncuSOLVER's gesvdaStridedBatched, %d components of %lld of these "
           "states: %.2f ms, %.1f ns a state, %.1f times the kernel's; largest "
           "weights off by %.1e\n",
           r.solverRank, (long long)(r.solverStates), r.solverMilliseconds,
           r.solverMilliseconds * 1e6 / double(r.solverStates),
           r.solverRatio(), r.solverWeightError);
  return text;
}

std::string ss_bench::formatInitJson(const InitResult &r) {
  nlohmann::ordered_json root = {
      {"device", r.device},
      {"package", r.package},
      {"layer", r.layer},
      {"dv", r.dv},
      {"dk", r.dk},
      {"profile", r.profile},
      {"eps", r.eps},
      {"states", r.states},
      {"chunk", r.chunk},
      {"copy_bandwidth", r.copyBandwidth},
      {"milliseconds", r.milliseconds},
      {"read_bytes", r.readBytes},
      {"written_bytes", r.writtenBytes},
      {"share_of_copy", r.shareOfCopy()},
      {"mean_rank", r.meanRank},
      {"dense_share", r.denseShare},
      {"checked", r.checked},
      {"wrong_ranks", r.wrongRanks},
      {"left_over", r.leftOver},
      {"weight_error", r.weightError},
      {"bound_share", r.boundShare},
      {"correct", r.isCorrect()}};
  if (r.noSolver.empty())
    root["gesvda"] = {{"states", r.solverStates},
                      {"rank", r.solverRank},
                      {"milliseconds", r.solverMilliseconds},
                      {"ratio", r.solverRatio()},
                      {"weight_error", r.solverWeightError}};
  else
    root["no_gesvda"] = r.noSolver;
  return root.dump(2) + "\n";
}
