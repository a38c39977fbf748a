//===- KernelArguments.cpp - Names a kernel may bind ----------------------===//

#include "package/KernelArguments.h"

namespace sinkstate::runtime {
namespace {
constexpr uint8_t kState = InFactoredDecode | InCompact | InDensify;
constexpr uint8_t kTable = kState | InInit;
constexpr uint8_t kRounding = InCompact | InDensify | InDenseDecode;
constexpr uint8_t kDecode = InFactoredDecode | InDenseDecode | InDeferredDecode;
constexpr uint8_t kBuffer = kState | InDeferredDecode;

// In the order of `Argument`.
constexpr ArgumentInfo kArguments[] = {
    {"rows", kStoredType, kState},   {"weights", "f32*", kTable},
    {"row_base", "i64*", kTable},    {"rank", "i32*", kTable},
    {"status", "i32*", kTable},      {"count", "i32*", kBuffer},
    {"buffer_k", "f32*", kBuffer},   {"buffer_u", "f32*", kBuffer},
    {"buffer_g", "f32*", kBuffer},   {"slots", "i32*", kDecode},
    {"q", "f32*", kDecode},          {"q_stride", "i64", kDecode},
    {"k", "f32*", kDecode},          {"k_stride", "i64", kDecode},
    {"v", "f32*", kDecode},          {"v_stride", "i64", kDecode},
    {"gate", "f32*", kDecode},       {"gate_stride", "i64", kDecode},
    {"beta", "f32*", kDecode},       {"beta_stride", "i64", kDecode},
    {"a_log", "f32*", kDecode},      {"dt_bias", "f32*", kDecode},
    {"y", "f32*", kDecode},          {"y_stride", "i64", kDecode},
    {"order", "i32*", InFactoredDecode},
    {"ordered", "i32", InFactoredDecode},
    {"work", "i32*", InCompact | InDensify | InInit},
    {"work_count", "i32*", InCompact | InDensify | InInit},
    {"count_ahead", "i32", InCompact | InDensify},
    {"policy_value", "f32", InCompact | InInit},
    {"max_rank", "i32", InCompact | InInit},
    {"row_capacity", "i32*", InCompact},
    {"out", "f32*", InDensify},      {"out_base", "i64*", InDensify},
    {"factors", "f32*", InInit},     {"matrices", "f32*", InInit},
    {"matrix_base", "i64*", InInit}, {"seed", "i64", InInit},
    {"dense", kStoredType, InDenseDecode | InDeferredDecode},
    {"positions", "i64*", kRounding}, {"request_keys", "i64*", kRounding},
    {"layer", "i32", kRounding},     {"first_head", "i32", kRounding},
    {"sink", "f32*", InCompact},
};
static_assert(std::size(kArguments) == size_t(Argument::Size));
} // namespace

const char *kernelRoleName(KernelRole role) {
  switch (role) {
  case KernelRole::Decode:
    return "decode";
  case KernelRole::Compact:
    return "compact";
  case KernelRole::Densify:
    return "densify";
  case KernelRole::Init:
    return "init";
  }
  return "unknown";
}

const ArgumentInfo &argumentInfo(Argument argument) {
  return kArguments[size_t(argument)];
}

std::optional<Argument> argumentByName(std::string_view name) {
  for (size_t i = 0; i < std::size(kArguments); ++i)
    if (kArguments[i].name == name)
      return Argument(i);
  return std::nullopt;
}

const void *const *ArgumentValues::bind(std::span<const Argument> order) {
  bound.clear();
  bound.reserve(size_t(Argument::Size)); // later launches allocate nothing
  for (Argument argument : order)
    bound.push_back(&values[size_t(argument)]);
  return bound.data();
}

void **ArgumentValues::bindLaunch(std::span<const Argument> order,
                                  int64_t programs) {
  launched = programs;
  bind(order);
  bound.push_back(&launched);
  // The driver's parameters are not const, but it only reads them.
  return const_cast<void **>(bound.data());
}

} // namespace sinkstate::runtime
