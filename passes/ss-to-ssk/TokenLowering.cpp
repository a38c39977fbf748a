//===- TokenLowering.cpp - a token's inputs in a kernel -------------------===//
//
// Part of the SinkState project.
//
//===----------------------------------------------------------------------===//
#include "TokenLowering.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace sinkstate {

bool TokenLowering::lower(Operation *op) {
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case<ss::NormalizeOp>([&](ss::NormalizeOp normalizeOp) {
        lowered[normalizeOp.getResult()] = normalize(normalizeOp);
        return true;
      })
      .Case<ss::LogDecayOp>([&](ss::LogDecayOp decay) {
        lowered[decay.getResult()] = logDecay(decay);
        return true;
      })
      .Case<ss::WriteWeightOp>([&](ss::WriteWeightOp weight) {
        k.note("weight of the new pair");
        Value beta = k.sigmoid(scalar(weight.getBeta()));
        double scale = weight.getScale().convertToDouble();
        lowered[weight.getResult()] = k.name(
            "write_weight", scale == 1.0 ? beta : k.mul(beta, k.constant("beta_scale", scale)));
        return true;
      })
      .Case<ss::TimeStepOp>([&](ss::TimeStepOp step) {
        k.note("time step");
        lowered[step.getResult()] =
            k.name("time_step", k.softplus(biasedGate(
                                    step.getInput(), step.getDtBias(), false)));
        return true;
      })
      .Default([](Operation *) { return false; });
}

Value TokenLowering::offset(StringRef argument, Value head, int64_t length) {
  Value stride =
      k.toIndex(t.arguments[(argument + "_stride").str()]);
  Value row = k.mul(batchRow, stride);
  if (length == 1)
    return k.add(row, head);
  bool ofKey = head == t.keyHead && (argument == "q" || argument == "k");
  return k.add(row, k.name(ofKey ? "key_offset" : "value_offset",
                           k.mul(head, k.index(length))));
}

bool TokenLowering::isVector(Value value) const {
  return lowered.contains(value) || arguments.contains(value);
}

Value TokenLowering::vector(Value value) {
  if (Value known = lowered.lookup(value))
    return known;
  return lowered[value] = loadVector(arguments.lookup(value));
}

Value TokenLowering::loadVector(StringRef argument) {
  bool isKey = argument == "q" || argument == "k";
  if (isKey)
    return k.load(t.keyTile(), t.arguments[argument],
                  offset(argument, t.keyHead, t.shape.dk));
  int64_t length = argument == "v" ? t.shape.dv : t.shape.dk;
  Type tile = argument == "v" ? t.valueTile() : t.keyTile();
  return k.load(tile, t.arguments[argument],
                offset(argument, t.head, length));
}

Value TokenLowering::scalar(Value value) {
  if (Value known = lowered.lookup(value))
    return known;
  StringRef argument = arguments.lookup(value);
  bool isParameter = argument == "a_log" || argument == "dt_bias";
  Value at = isParameter ? t.head : offset(argument, t.head, 1);
  return lowered[value] = k.read(t.arguments[argument], at);
}

// Sums of squares between these two are good to float32's digits. A vector with
// another one is measured again, times a power of two: without looking for its
// largest element.
static constexpr double kMostSquares = 0x1p127, kLeastSquares = 0x1p-80;
// The largest element of such a vector is above 2^50 (below 2^-40), and becomes
// 2^-30 to 2^48 (2^-49 to 2^60): squares of both ends are float32 numbers.
static constexpr double kShrink = 0x1p-80, kGrow = 0x1p100;
// Beside the square of a larger epsilon it does not matter that squares vanish.
static constexpr double kLeastEpsilonSquare = 0x1p-110;

KernelBuilder::Values TokenLowering::measure(Value x, ss::NormAttr norm,
                                             StringRef called) {
  const bool adds = norm.getKind() == ss::NormKind::add;
  const double epsilon = norm.getEps();
  auto epsilonTimes = [&](double by) {
    return k.constant("norm_epsilon", adds ? epsilon * by * by : epsilon * by);
  };
  Value squares = k.name((called + called).str(), k.dot(x, x));
  // Not so for infinity and NaN.
  Value fits = k.less(squares, k.real(kMostSquares));
  Value by = k.select(fits, k.real(1), k.real(kShrink));
  Value added = k.select(fits, epsilonTimes(1), epsilonTimes(kShrink));
  if ((adds ? epsilon : epsilon * epsilon) < kLeastEpsilonSquare) {
    Value vanishes = k.less(squares, k.real(kLeastSquares));
    by = k.select(vanishes, k.real(kGrow), by);
    added = k.select(vanishes, epsilonTimes(kGrow), added);
  }
  // Always: a branch costs registers, and decode kernels have none to spare. An
  // ordinary vector is multiplied with 1 and keeps its bits.
  Value scaled = k.name((called + "_scaled").str(),
                        k.map(t.keyTile(), x, [&](ValueRange e) {
                          return k.mul(e[0], by);
                        }));
  Value again = k.dot(scaled, scaled);
  return {scaled, adds ? k.sqrt(k.add(again, added))
                       : k.max(k.sqrt(again), added)};
}

Value TokenLowering::normalize(ss::NormalizeOp op) {
  ss::NormAttr norm = op.getNorm();
  double scale = op.getScale().convertToDouble();
  k.note("normalised query and key");
  Value x = vector(op.getInput());
  StringRef called = arguments.lookup(op.getInput());
  Value factor = scale == 1.0 ? k.real(1) : k.constant((called + "_size").str(), scale);
  if (norm.getKind() != ss::NormKind::none) {
    KernelBuilder::Values measured = measure(x, norm, called);
    x = measured[0];
    factor = k.name((called + "_scale").str(), k.div(factor, measured[1]));
  } else if (scale == 1.0) {
    return x;
  }
  return k.name((called + "_unit").str(),
                k.map(t.keyTile(), x,
                      [&](ValueRange e) { return k.mul(e[0], factor); }));
}

Value TokenLowering::biasedGate(Value gate, Value bias, bool channels) {
  if (!channels)
    return k.name("gate_input", k.add(scalar(gate), scalar(bias)));
  Value x = vector(gate);
  Value b = k.load(t.keyTile(), t.arguments["dt_bias"],
                   k.mul(t.head, k.index(t.shape.dk)));
  return k.name("gate_input",
                k.map(t.keyTile(), {x, b},
                      [&](ValueRange e) { return k.add(e[0], e[1]); }));
}

/// exp of less is zero in f32. The bound keeps running sums of a few dozen
/// decays finite and precise whatever the gate says; NaN passes.
static constexpr double kLowestLogDecay = -104;

Value TokenLowering::logDecay(ss::LogDecayOp op) {
  ss::GateAttr gate = op.getGate();
  k.note("log-decay of this token");
  Value x = biasedGate(op.getInput(), op.getDtBias(), gate.isChannel());
  Value rate = k.name("rate", k.exp(scalar(op.getALog())));
  Value lowest = k.constant("lowest_log_decay", kLowestLogDecay);
  auto decay = [&](Value input) {
    Value g = gate.isBounded()
                  ? k.mul(k.constant("gate_bound", gate.getBound()),
                          k.sigmoid(k.mul(rate, input)))
                  : k.neg(k.mul(rate, k.softplus(input)));
    return k.max(g, lowest);
  };
  if (!gate.isChannel())
    return k.name("log_decay", decay(x));
  return k.name("log_decay", k.map(t.keyTile(), x, [&](ValueRange e) {
                  return decay(e[0]);
                }));
}

} // namespace sinkstate
