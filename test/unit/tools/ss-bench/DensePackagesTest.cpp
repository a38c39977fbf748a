//===- DensePackagesTest.cpp - What is measured beside a package ----------===//

#include "DensePackages.h"
#include "TestLayers.h"

#include <gtest/gtest.h>

using namespace ss_bench;
using namespace sinkstate::runtime;

namespace {

/// Two layers of one storage, factored or of a dense form.
Manifest model(Storage storage, const std::string &form = "factored") {
  Manifest manifest;
  for (const char *name : {"layer0", "layer1"}) {
    LayerManifest layer = gdnLayer();
    layer.name = name;
    layer.storage = storage;
    layer.denseForm = form == "dense" || form == "deferred";
    layer.deferred = form == "deferred";
    layer.sinkForm = form == "sink";
    manifest.layers.push_back(layer);
  }
  return manifest;
}

/// What is wrong, or "".
std::string wrong(const Manifest &ours, const Manifest &dense,
                  DenseForm form = DenseForm::Dense) {
  const auto failed = checkDense(ours, dense, form, "d");
  return failed ? failed->message : "";
}

TEST(DensePackages, AreTakenInTheirFormsAndStorages) {
  for (Storage storage : {Storage::F32, Storage::F16, Storage::BF16}) {
    const Manifest ours = model(storage);
    EXPECT_EQ(wrong(ours, model(storage, "dense")), "");
    EXPECT_EQ(wrong(ours, model(storage, "deferred"), DenseForm::Deferred), "");
    EXPECT_EQ(wrong(ours, model(Storage::F32, "dense"), DenseForm::DenseF32),
              "");
  }
  // Nothing dense has 8 bits.
  EXPECT_EQ(wrong(model(Storage::FP8), model(Storage::F16, "dense")), "");
}

TEST(DensePackages, AreNotFactored) {
  const Manifest ours = model(Storage::F32);
  EXPECT_EQ(wrong(ours, ours),
            "--dense-package d: layer 'layer0': found form factored in f32, "
            "expected form dense in f32: compile what ss-import --form dense "
            "--storage f32 makes of the model");
  EXPECT_EQ(wrong(ours, model(Storage::F32, "sink"), DenseForm::Deferred),
            "--deferred-package d: layer 'layer0': found form sink in f32, "
            "expected form deferred in f32: compile what ss-import --form "
            "deferred --storage f32 makes of the model");
}

TEST(DensePackages, AreNotOfTheOtherDenseForm) {
  const Manifest ours = model(Storage::F16);
  EXPECT_NE(wrong(ours, model(Storage::F16, "deferred"))
                .find("found form deferred in f16, expected form dense in f16"),
            std::string::npos);
  EXPECT_NE(wrong(ours, model(Storage::F16, "dense"), DenseForm::Deferred)
                .find("found form dense in f16, expected form deferred in f16"),
            std::string::npos);
}

TEST(DensePackages, HaveTheStorageThatIsComparedWith) {
  EXPECT_NE(wrong(model(Storage::F16), model(Storage::F32, "dense"))
                .find("found form dense in f32, expected form dense in f16"),
            std::string::npos);
  EXPECT_EQ(wrong(model(Storage::FP8), model(Storage::FP8), DenseForm::DenseF32),
            "--dense-f32-package d: layer 'layer0': found form factored in fp8, "
            "expected form dense in f32: compile what ss-import --form dense "
            "--storage f32 makes of the model");
  EXPECT_NE(wrong(model(Storage::F16), model(Storage::F16, "dense"),
                  DenseForm::DenseF32),
            "");
}

TEST(DensePackages, AreLookedAtInEveryLayer) {
  Manifest dense = model(Storage::F32, "dense");
  dense.layers[1].denseForm = false;
  EXPECT_NE(wrong(model(Storage::F32), dense).find("layer 'layer1': found form"),
            std::string::npos);
  dense = model(Storage::F32, "dense");
  dense.layers[1].storage = Storage::BF16;
  EXPECT_NE(wrong(model(Storage::F32), dense).find("layer 'layer1': found form"),
            std::string::npos);
}

TEST(DensePackages, AreOfTheSameModel) {
  Manifest dense = model(Storage::F32, "dense");
  dense.layers.pop_back();
  EXPECT_EQ(wrong(model(Storage::F32), dense),
            "--dense-package d: found 1 layers, expected the 2 of --package: "
            "take one that is compiled of the same model");
  for (auto change : {+[](LayerManifest &l) { l.heads = 8; },
                      +[](LayerManifest &l) { l.keyHeads = 4; },
                      +[](LayerManifest &l) { l.dv = 8; },
                      +[](LayerManifest &l) { l.dk = 8; },
                      +[](LayerManifest &l) { l.type = "kda"; }}) {
    dense = model(Storage::F32, "dense");
    change(dense.layers[1]);
    EXPECT_NE(wrong(model(Storage::F32), dense).find("layer 'layer1': found "),
              std::string::npos);
  }
}

} // namespace
