// Evaluation: expressions (expression.h) on a scalar of proofs, node by node as the core would have gone.
#pragma once

#include <array>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "attest/scalars/expression.h"

namespace attest {

/// What expressions need of a scope, apart from what an evaluation knows already.
struct ExpressionNeeds {
  std::size_t inputs = 0, references = 0, exponentials = 0, logarithms = 0;
};

/// Calls visit(node) for every node that `roots` reach and `known(node)` does not say to be known, parts first; the
/// lists of reference points are not among them, what they list is.
template <class Known, class Visit>
void for_each_part(const ExpressionScope& graph, std::span<const std::uint32_t> roots, Known&& known, Visit&& visit) {
  struct Open {
    std::uint32_t node;
    bool parts_done;
  };
  std::vector<Open> open;
  for (const std::uint32_t root : roots) open.push_back({root, false});
  while (!open.empty()) {
    const Open here = open.back();
    open.pop_back();
    if (known(here.node)) continue;
    const ExpressionNode& node = graph[here.node];
    if (here.parts_done || node.step == Step::input || node.step == Step::constant) {
      visit(here.node);
      continue;
    }
    open.push_back({here.node, true});
    if (node.step == Step::reference) {
      for (std::uint32_t at = node.left; graph[at].step == Step::list; at = graph[at].left)
        open.push_back({graph[at].right, false});
      continue;
    }
    open.push_back({node.left, false});
    if (node.step != Step::exponential && node.step != Step::logarithm) open.push_back({node.right, false});
  }
}

/// What `roots` need beyond the nodes that are known.
template <class Known>
[[nodiscard]] ExpressionNeeds needs_of(const ExpressionScope& graph, std::span<const std::uint32_t> roots,
                                       Known&& known) {
  ExpressionNeeds needs;
  std::unordered_set<std::uint32_t> seen;
  for_each_part(
      graph, roots, [&](std::uint32_t node) { return seen.contains(node) || known(node); },
      [&](std::uint32_t node) {
        seen.insert(node);
        const Step step = graph[node].step;
        needs.inputs += step == Step::input, needs.references += step == Step::reference;
        needs.exponentials += step == Step::exponential, needs.logarithms += step == Step::logarithm;
      });
  return needs;
}

/// `Inputs` is a scope of the scalar: Inputs::Number, real(name), positive(name). One input of the graph is one there.
template <class Inputs>
class Evaluation {
 public:
  using Number = typename Inputs::Number;
  Evaluation(const ExpressionScope& graph, Inputs& inputs) : graph_(graph), inputs_(inputs) {}

  [[nodiscard]] bool knows(std::uint32_t node) const { return numbers_.contains(node); }
  /// Throws what the scalar throws.
  [[nodiscard]] const Number& at(std::uint32_t root) {
    const std::array<std::uint32_t, 1> roots{root};
    for_each_part(
        graph_, roots, [&](std::uint32_t node) { return numbers_.contains(node); },
        [&](std::uint32_t node) { numbers_.emplace(node, computed(graph_[node])); });
    return numbers_.at(root);
  }

 private:
  using Traits = ScalarTraits<Number>;
  [[nodiscard]] Number computed(const ExpressionNode& node) {
    const auto part = [&](std::uint32_t at) -> const Number& { return numbers_.at(at); };
    switch (node.step) {
      case Step::input:
        return node.positive ? inputs_.positive(graph_.name(node.left)) : inputs_.real(graph_.name(node.left));
      case Step::constant:
        return Traits::from_double(graph_.constant(node.left));
      case Step::sum:
        return part(node.left) + part(node.right);
      case Step::difference:
        return part(node.left) - part(node.right);
      case Step::product:
        return part(node.left) * part(node.right);
      case Step::quotient:
        return part(node.left) / part(node.right);
      case Step::exponential:
        return Traits::exp(part(node.left));
      case Step::logarithm:
        return Traits::log(part(node.left));
      case Step::reference: {
        std::vector<Number> row;
        for (std::uint32_t at = node.left; graph_[at].step == Step::list; at = graph_[at].left)
          row.push_back(part(graph_[at].right));
        return Traits::reference_point(row);
      }
      case Step::list:
        break;
    }
    throw ProofError("a list is no number");
  }

  const ExpressionScope& graph_;
  Inputs& inputs_;
  std::unordered_map<std::uint32_t, Number> numbers_;
};

}  // namespace attest
