// What autograd would run for a tensor, for tests of what became part of another op.
#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>

namespace siamese::models {

// Names of the nodes of backward below `output`.
inline std::multiset<std::string> nodes_below(const at::Tensor& output) {
  std::multiset<std::string> names;
  std::set<torch::autograd::Node*> seen;
  std::vector<torch::autograd::Node*> open{output.grad_fn().get()};
  while (!open.empty()) {
    torch::autograd::Node* const node = open.back();
    open.pop_back();
    if (node == nullptr || !seen.insert(node).second) continue;
    names.insert(node->name());
    for (const auto& edge : node->next_edges()) open.push_back(edge.function.get());
  }
  return names;
}

}  // namespace siamese::models
