//===- RowOrder.cpp - The active rows of a state come first ---------------===//

#include "consolidation/RowOrder.h"

#include <algorithm>
#include <numeric>

namespace sinkstate::consolidation {

void largestFirst(float *rows, float *weights, int32_t count, int64_t width,
                  int32_t active) {
  std::vector<int32_t> order(size_t(count), 0);
  std::iota(order.begin(), order.end(), 0);
  auto heavier = [&](int32_t a, int32_t b) {
    return weights[a] != weights[b] ? weights[a] > weights[b] : a < b;
  };
  std::nth_element(order.begin(), order.begin() + active, order.end(), heavier);
  std::sort(order.begin(), order.begin() + active);
  std::sort(order.begin() + active, order.end());
  const std::vector<float> oldRows(rows, rows + count * width);
  const std::vector<float> oldWeights(weights, weights + count);
  for (int32_t i = 0; i < count; ++i) {
    auto from = oldRows.begin() + order[size_t(i)] * width;
    std::copy(from, from + width, rows + i * width);
    weights[i] = oldWeights[size_t(order[size_t(i)])];
  }
}

} // namespace sinkstate::consolidation
