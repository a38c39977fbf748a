//===- DecodeTest.cpp - Decoding against the dense recurrence -------------===//

#include "EngineUnderTest.h"

#include <gtest/gtest.h>

#include <cstring>

using namespace sinkstate;
using namespace sinkstate::test;

namespace {

struct Shape {
  const char *type;
  int32_t heads, keyHeads, dv, dk;
};

LayerSpec layerOf(const Shape &shape) {
  if (std::string(shape.type) == "mamba2")
    return mamba2Layer(shape.heads, shape.keyHeads, shape.dv, shape.dk);
  if (std::string(shape.type) == "kda")
    return kdaLayer(shape.heads, shape.keyHeads, shape.dv, shape.dk);
  return gdnLayer(shape.heads, shape.keyHeads, shape.dv, shape.dk);
}

class ExactDecode : public testing::TestWithParam<Shape> {};

// Nothing is truncated at eps 0: outputs and states follow the recurrence.
TEST_P(ExactDecode, FollowsTheDenseRecurrence) {
  EngineUnderTest test({layerOf(GetParam())});
  DrivenRequest request = test.request(1);
  for (int step = 0; step < 28; ++step)
    ASSERT_LE(test.driver.step({&request}).worstError, 1e-5) << step;
  EXPECT_LE(test.driver.stateError(request, 0), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, ExactDecode,
    testing::Values(Shape{"mamba2", 4, 1, 80, 128},
                    Shape{"mamba2", 2, 2, 64, 128},
                    Shape{"gdn", 2, 2, 128, 128}, Shape{"gdn", 4, 2, 80, 128},
                    Shape{"gdn", 3, 1, 16, 8}, Shape{"kda", 2, 2, 128, 128},
                    Shape{"kda", 4, 2, 64, 128}),
    [](const testing::TestParamInfo<Shape> &info) {
      const Shape &s = info.param;
      return std::string(s.type) + "_h" + std::to_string(s.heads) + "k" +
             std::to_string(s.keyHeads) + "_" + std::to_string(s.dv) + "x" +
             std::to_string(s.dk);
    });

} // namespace
