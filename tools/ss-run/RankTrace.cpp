//===- RankTrace.cpp - Stored ranks as a file for ss-bench ----------------===//

#include "RankTrace.h"

#include <algorithm>

using namespace ss_run;

/// Ranks move little between two compactions.
static constexpr size_t kStepsApart = 16;

std::string ss_run::formatRanks(const RankHistory &history,
                                const std::string &source) {
  std::string comment = source;
  std::replace_if(
      comment.begin(), comment.end(), [](char c) { return c == '\n' || c == '\r'; },
      ' ');
  std::string text = "# stored ranks, a layer a line; -1: dense\n# " + comment +
                     "\n";
  // The last step is always among them.
  const size_t steps = history.steps.size();
  for (size_t step = steps / 2 + (steps - 1 - steps / 2) % kStepsApart;
       step < steps; step += kStepsApart) {
    size_t head = 0;
    for (const ProbedLayer &layer : history.layers) {
      text += layer.type;
      for (int i = 0; i < layer.heads; ++i)
        text += " " + std::to_string(history.steps[step][head++]);
      text += "\n";
    }
  }
  return text;
}
