//===- SinkFileTest.cpp - Mean values of a model's heads ------------------===//

#include "SinkFile.h"

#include "TemporaryFile.h"

#include <gtest/gtest.h>

using namespace ss_run;
using namespace tiny_hybrid;

namespace {

class SinkFileTest : public testing::Test {
protected:
  void SetUp() override {
    auto loaded = Model::load(TINY_HYBRID_MODEL);
    ASSERT_TRUE(loaded) << loaded.error();
    config = loaded->config;
    for (size_t layer = 0; layer < config.layers.size(); ++layer)
      if (config.layers[layer] != LayerKind::Attention) {
        const RecurrentSizes &sizes = config.recurrent(config.layers[layer]);
        means[int(layer)].assign(size_t(sizes.heads * sizes.dv),
                                 float(layer + 1));
      }
    ASSERT_GT(means.size(), 2u);
  }
  Result<MeanValues> readBack(const MeanValues &written) {
    const tiny_hybrid_test::TemporaryFile file(formatMeans(config, written));
    return readMeans(file.path, config, without);
  }

  Config config;
  MeanValues means;
  std::vector<int> without;
};

TEST_F(SinkFileTest, ReadsWhatItWrites) {
  auto read = readBack(means);
  ASSERT_TRUE(read) << read.error();
  EXPECT_EQ(*read, means);
  EXPECT_TRUE(without.empty());
}

TEST_F(SinkFileTest, ALayerThatIsNotThereHasNoSink) {
  MeanValues written = means;
  const int missing = written.begin()->first;
  written.erase(written.begin());
  auto read = readBack(written);
  ASSERT_TRUE(read) << read.error();
  EXPECT_EQ(without, std::vector<int>{missing});
  EXPECT_EQ(read->at(missing), std::vector<float>(means[missing].size()));
  written[missing] = read->at(missing);
  EXPECT_EQ(*read, written);
}

TEST_F(SinkFileTest, SaysWhenItIsNoSuchFile) {
  const std::string file = TINY_HYBRID_MODEL "/golden.safetensors";
  auto read = readMeans(file, config, without);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error(), file + ": found no tensor layers.N.vbar of a recurrent "
                                 "layer, expected a file of --calibrate-sink");
}

} // namespace
