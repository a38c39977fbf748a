//===- Graphs.h - The models of the conformance suite -----------*- C++ -*-===//
//
// One table of small models that every back end runs. Their layers are
// descriptions; graphText() spells one as the ss.model that the compiler takes.
//
//===----------------------------------------------------------------------===//
#ifndef SINKSTATE_CONFORMANCE_GRAPHS_H
#define SINKSTATE_CONFORMANCE_GRAPHS_H

#include "ModelSpec.h"

#include <string>
#include <vector>

namespace sinkstate::conformance {

struct Graph {
  std::string name; ///< a C identifier: also the name of a package folder
  std::vector<reference::LayerSpec> layers;
};

const std::vector<Graph> &allGraphs();

/// Throws where the table has no such graph.
const Graph &graphNamed(const std::string &name);

/// The graphs of these names and their twins with `core qr`, "<name>_qr"; the
/// former have `core svd`.
std::vector<std::string> withBothCores(const std::vector<std::string> &names);

/// ss.model @<name> { ... } without a schedule.
std::string graphText(const Graph &graph);

} // namespace sinkstate::conformance

#endif
