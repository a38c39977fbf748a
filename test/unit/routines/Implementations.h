// Every implementation of the device routines that this machine can run, so
// that one test body drives them all.
#ifndef SINKSTATE_TEST_ROUTINES_IMPLEMENTATIONS_H
#define SINKSTATE_TEST_ROUTINES_IMPLEMENTATIONS_H

#include "sinkstate/cpu_routines.h"

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

namespace sinkstate::test {

struct Implementation {
  std::string name;
  const ss_routine_table *table;
};

std::vector<Implementation> implementations();

/// Implementation and size of the matrix.
using Case = std::tuple<Implementation, int>;
using RoutineTest = ::testing::TestWithParam<Case>;

std::string caseName(const ::testing::TestParamInfo<Case> &info);
std::vector<int> matrixSizes();

} // namespace sinkstate::test
#endif
