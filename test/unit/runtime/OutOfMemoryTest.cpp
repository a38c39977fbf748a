//===- OutOfMemoryTest.cpp - Running out of memory changes nothing --------===//

#include "EngineUnderTest.h"
#include "ForwardingDevice.h"

#include "state/RowPool.h"

#include <gtest/gtest.h>

#include <sys/resource.h>

#include <new>

using namespace sinkstate;
using namespace sinkstate::test;

namespace {

/// Refuses to commit anything while `refusing`.
class PoorDevice final : public ForwardingDevice {
public:
  bool refusing = false;

  void commit(std::byte *begin, size_t bytes) override {
    if (refusing)
      throw std::bad_alloc();
    ForwardingDevice::commit(begin, bytes);
  }
};

TEST(OutOfMemory, APoolThatCannotGrowIsUnchanged) {
  PoorDevice device;
  runtime::RowPool pool(device, 1000, {16}, 1024);
  const runtime::RowBlock first = pool.allocate(16);
  const int64_t held = pool.heldBytes();
  device.refusing = true;
  int allocated = 0;
  // What is committed already can still be handed out.
  EXPECT_THROW(
      {
        while (true) {
          pool.allocate(16);
          ++allocated;
        }
      },
      std::bad_alloc);
  EXPECT_EQ(pool.heldBytes(), held + allocated * 16 * 256 * 4);
  EXPECT_GT(allocated, 0);
  device.refusing = false;
  const runtime::RowBlock next = pool.allocate(16);
  EXPECT_EQ(next.index, allocated + 1);
  EXPECT_NE(pool.base(next), pool.base(first));
}

#if !defined(SS_SANITIZE_address) && !defined(SS_SANITIZE_thread)
/// Limits the writable memory of this process while it lives.
class MemoryLimit {
public:
  explicit MemoryLimit(rlim_t bytes) {
    getrlimit(RLIMIT_DATA, &before);
    rlimit now = before;
    now.rlim_cur = bytes;
    setrlimit(RLIMIT_DATA, &now);
  }
  ~MemoryLimit() { setrlimit(RLIMIT_DATA, &before); }

private:
  rlimit before;
};

TEST(OutOfMemory, ADecodeStepThatFindsNoneCanBeRepeated) {
  const LayerSpec layer = gdnLayer(2, 2, 128, 128);
  ss_engine_options options = optionsFor(1);
  options.threads = 1; // making a thread takes memory too
  EngineUnderTest poor({layer}, options), rich({layer}, options);
  DrivenRequest request = rich.request(1);
  const int32_t slot = poor.engine.allocateSlot();
  int refused = 0;
  for (int step = 0; step < 40; ++step) {
    const TokenValues token = request.inputs(0).token(step);
    std::vector<float> y(size_t(layer.valueFloats()), 42.0f);
    const std::vector<float> untouched = y;
    ss_decode_args args = decodeArgs();
    args.batch = 1;
    args.slots = &slot;
    args.q = {token.q.data(), 0};
    args.k = {token.k.data(), 0};
    args.v = {token.v.data(), 0};
    args.gate = {token.gate.data(), 0};
    args.beta = {token.beta.data(), 0};
    args.a_log = poor.driver.weights(0).aLog.data();
    args.dt_bias = poor.driver.weights(0).dtBias.data();
    args.y = y.data();
    ss_result result;
    {
      // What is writable now stays so; nothing is added.
      MemoryLimit limit(1);
      result = ss_decode_layer(poor.engine.get(), 0, &args);
    }
    if (result != SS_OK) {
      ++refused;
      EXPECT_EQ(result, SS_OUT_OF_MEMORY);
      EXPECT_EQ(y, untouched);
      ASSERT_EQ(ss_decode_layer(poor.engine.get(), 0, &args), SS_OK);
    }
    poor.engine.endStep({slot});
    ASSERT_EQ(y, rich.driver.step({&request}).y[0]) << step;
  }
  EXPECT_GT(refused, 0);
}
#endif

} // namespace
