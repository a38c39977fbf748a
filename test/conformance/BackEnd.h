//===- BackEnd.h - Who runs the conformance suite ---------------*- C++ -*-===//
//
// A back end turns a graph into kernels and says on which device engines over
// them run. The suite's tests run once per registered back end.
//
//   registerBackEnd(std::make_unique<ReferenceBackEnd>());
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_CONFORMANCE_BACKEND_H
#define SINKSTATE_CONFORMANCE_BACKEND_H

#include "Graphs.h"

#include "sinkstate/sinkstate.hpp"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace sinkstate::conformance {

/// The value of a kernel's argument: a number, or an array in host memory that
/// kernels read and, where `result` is not null, change.
struct KernelArgument {
  std::string name;
  uint64_t number = 0; ///< the bytes of an i32, i64 or f32
  const void *array = nullptr;
  void *result = nullptr; ///< `array` again
  size_t bytes = 0;
};

/// The kernels of one graph. Engines over it must not outlive it.
class Model {
public:
  virtual ~Model() = default;
  virtual const Package &package() const = 0;
  /// The text of manifest.json.
  virtual const std::string &manifest() const = 0;
  /// Runs programs [begin, end) of a kernel, whose arguments are in its order.
  /// Throws where it cannot.
  virtual void launch(const std::string &kernel,
                      const std::vector<KernelArgument> &arguments,
                      int64_t begin, int64_t end) const;

protected:
  /// The CPU entry point of a kernel; null where kernels run elsewhere.
  virtual ss_cpu_kernel kernel(const std::string &) const { return nullptr; }
};

class BackEnd {
public:
  virtual ~BackEnd() = default;

  virtual std::string name() const = 0;
  /// Why nothing of it can run here; "" where it can.
  virtual std::string unavailable() const { return ""; }
  /// Tests it does not support, "Suite" or "Suite.Test", with the reason.
  virtual std::map<std::string, std::string> unsupported() const { return {}; }
  /// Sets the device and what else its engines need.
  virtual void configure(ss_engine_options &) const {}
  /// Kernels and packages are made by `open` and kept: a graph is compiled
  /// once in a process.
  const Model &model(const Graph &graph);
  /// Lets go of the models: a GPU's driver does not outlive main().
  void close() { models.clear(); }

protected:
  /// Throws where the kernels cannot be had.
  virtual std::unique_ptr<Model> open(const Graph &graph) = 0;

private:
  std::map<std::string, std::unique_ptr<Model>> models;
};

/// Before the tests are listed, that is before InitGoogleTest.
void registerBackEnd(std::unique_ptr<BackEnd> backEnd);
const std::vector<std::unique_ptr<BackEnd>> &backEnds();

/// The float64 kernels of reference/.
std::unique_ptr<BackEnd> makeReferenceBackEnd();
/// Packages in `folder`/<graph>, on the CPU.
std::unique_ptr<BackEnd> makePackagesBackEnd(std::string folder);
/// The same packages on a GPU; `folder` may be "" where there is none.
std::unique_ptr<BackEnd> makeCudaBackEnd(std::string folder);

} // namespace sinkstate::conformance

#endif
