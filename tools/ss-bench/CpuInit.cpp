//===- CpuInit.cpp - An init kernel on the processor ----------------------===//

#include "CpuInit.h"

#include "engine/Stopwatch.h"
#include "handover/InitialState.h"

#include <numeric>

using namespace sinkstate::runtime;
using namespace ss_bench;

CpuInit::CpuInit(CpuDevice &device, const Package &package,
                 const LayerManifest &layer, const Spectra &spectra, float eps)
    : device(device), package(package), layer(layer), count(spectra.count),
      most(mostInitialRows(layer)), matrices(spectra.columns) {
  const auto states = size_t(count), room = states * size_t(most);
  rows.resize(room * size_t(layer.dk + layer.dv));
  weights.resize(room);
  rank.resize(states), status.resize(states), work.resize(states);
  std::iota(work.begin(), work.end(), 0);
  for (int64_t i = 0; i < count; ++i) {
    rowBase.push_back(i * most);
    matrixBase.push_back(i * layer.dv * layer.dk);
  }
  values.setPointer(Argument::Factors, rows.data());
  values.setPointer(Argument::Weights, weights.data());
  values.setPointer(Argument::RowBase, rowBase.data());
  values.setPointer(Argument::Rank, rank.data());
  values.setPointer(Argument::Status, status.data());
  values.setPointer(Argument::Work, work.data());
  values.setPointer(Argument::WorkCount, &count);
  values.setPointer(Argument::Matrices, matrices.data());
  values.setPointer(Argument::MatrixBase, matrixBase.data());
  values.setF32(Argument::PolicyValue, eps);
  values.setI32(Argument::MaxRank, most);
  values.setI64(Argument::Seed, 1);
}

double CpuInit::run() {
  double seconds = 0;
  {
    const Stopwatch watch(seconds);
    device.launch({package, layer.init, values, count});
    device.wait();
  }
  return seconds * 1000;
}

FoundStates CpuInit::found() const {
  return {count, most, rank, status, weights, rows};
}
