//===- Config.h - What config.json says about the model ---------*- C++ -*-===//
#ifndef TINY_HYBRID_CONFIG_H
#define TINY_HYBRID_CONFIG_H

#include "Result.h"

#include <string>
#include <vector>

namespace tiny_hybrid {

enum class LayerKind { Gdn, Mamba2, Kda, Attention };

/// "gdn", "mamba2", "kda", "attention"
const char *toString(LayerKind kind);

/// Sizes of the recurrent layers of one kind. Keys and queries have
/// `keyHeads` heads of `dk`, values have `heads` heads of `dv`.
struct RecurrentSizes {
  int heads = 0;
  int keyHeads = 0;
  int dk = 0;
  int dv = 0;
  int convWidth = 0;
  int gateRank = 0; ///< kda: rank of the two gates' projections.
};

struct AttentionSizes {
  int heads = 0;
  int headDim = 0;
  double ropeTheta = 0;
};

/// The model of a config.json whose `model_type` is `byte-hybrid`. Unknown
/// keys are errors: they would be sizes that this code does not honour.
struct Config {
  int vocab = 0;
  int hidden = 0;
  int intermediate = 0;
  double rmsNormEps = 0;
  std::vector<LayerKind> layers;
  RecurrentSizes gdn, mamba2, kda;
  AttentionSizes attention;

  static Result<Config> load(const std::string &path);
  /// `path` is only named in errors.
  static Result<Config> parse(const std::string &text, const std::string &path);

  const RecurrentSizes &recurrent(LayerKind kind) const;
  bool has(LayerKind kind) const;
};

} // namespace tiny_hybrid

#endif // TINY_HYBRID_CONFIG_H
