#include "Implementations.h"

#include "EmulatedDevice.h"

namespace sinkstate::test {

std::vector<Implementation> implementations() {
  std::vector<Implementation> result;
  for (auto [name, isa] : {std::pair{"Baseline", "baseline"},
                           {"V3", "x86-64-v3"},
                           {"V4", "x86-64-v4"}})
    if (const ss_routine_table *table = ss_cpu_routines_for(isa))
      result.push_back({name, table});
  result.push_back({"Device", &emulatedDevice});
  return result;
}

std::string caseName(const ::testing::TestParamInfo<Case> &info) {
  auto &[implementation, m] = info.param;
  return implementation.name + "_" + std::to_string(m);
}

std::vector<int> matrixSizes() { return {1, 2, 7, 8, 16, 17, 24, 32, 40, 64}; }

} // namespace sinkstate::test
