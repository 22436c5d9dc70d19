// Evaluation: expressions (expression.h) on a scalar of proofs, node by node as the core would have gone.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "core/proof/expression.h"

namespace attest {

/// What expressions need of a scope, apart from what an evaluation knows already.
struct ExpressionNeeds {
  std::size_t inputs = 0, references = 0, exponentials = 0, logarithms = 0;
};

/// What is held of some nodes of a graph, a number each, in pages of which only those that hold something exist: one
/// row of a large attention reaches few of its nodes.
class NodeMap {
 public:
  static constexpr std::uint32_t none = 0xffffffff;
  /// What was put there since the last clear(); none otherwise.
  [[nodiscard]] std::uint32_t operator[](std::uint32_t node) const {
    const std::size_t place = node / page_size;
    if (place >= places_.size() || places_[place].round != round_) return none;
    const Entry& entry = (*pages_[places_[place].value])[node % page_size];
    return entry.round == round_ ? entry.value : none;
  }
  [[nodiscard]] bool contains(std::uint32_t node) const { return (*this)[node] != none; }
  void put(std::uint32_t node, std::uint32_t value) {
    const std::size_t place = node / page_size;
    if (place >= places_.size()) places_.resize(place + 1);
    if (places_[place].round != round_) {
      if (used_ == pages_.size()) pages_.push_back(std::make_unique<Page>());
      places_[place] = {round_, used_++};
    }
    (*pages_[places_[place].value])[node % page_size] = {round_, value};
  }
  /// The pages stay, for what comes next.
  void clear() {
    used_ = 0;
    if (++round_ == 0) *this = NodeMap();
  }

 private:
  /// Counts while `round` is that of the map.
  struct Entry {
    std::uint32_t round = 0, value = none;
  };
  static constexpr std::size_t page_size = 512;
  using Page = std::array<Entry, page_size>;
  std::vector<Entry> places_;  ///< by page of the graph: where it is in pages_
  std::vector<std::unique_ptr<Page>> pages_;
  std::uint32_t round_ = 1, used_ = 0;
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
    const bool one = node.step == Step::exponential || node.step == Step::logarithm || node.step == Step::tangent;
    if (!one) open.push_back({node.right, false});
  }
}

/// What `roots` need beyond the nodes that are known. `seen` is room to work in, its contents are lost.
template <class Known>
[[nodiscard]] ExpressionNeeds needs_of(const ExpressionScope& graph, std::span<const std::uint32_t> roots,
                                       NodeMap& seen, Known&& known) {
  ExpressionNeeds needs;
  seen.clear();
  for_each_part(
      graph, roots, [&](std::uint32_t node) { return seen.contains(node) || known(node); },
      [&](std::uint32_t node) {
        seen.put(node, 0);
        const Step step = graph[node].step;
        needs.inputs += step == Step::input, needs.references += step == Step::reference;
        // A tangent is made of an exponential.
        needs.exponentials += step == Step::exponential || step == Step::tangent;
        needs.logarithms += step == Step::logarithm;
      });
  return needs;
}

/// `Inputs` is a scope of the scalar: Inputs::Number, real(name), positive(name). One input of the graph is one there.
template <class Inputs>
class Evaluation {
 public:
  using Number = typename Inputs::Number;
  /// `places` is where it keeps which nodes it knows: one map serves evaluations that follow each other.
  Evaluation(const ExpressionScope& graph, Inputs& inputs, NodeMap& places)
      : graph_(graph), inputs_(inputs), places_(places) {
    places_.clear();
  }

  [[nodiscard]] bool knows(std::uint32_t node) const { return places_.contains(node); }
  /// Throws what the scalar throws.
  [[nodiscard]] const Number& at(std::uint32_t root) {
    const std::array<std::uint32_t, 1> roots{root};
    for_each_part(
        graph_, roots, [&](std::uint32_t node) { return knows(node); },
        [&](std::uint32_t node) {
          numbers_.push_back(computed(graph_[node]));
          places_.put(node, static_cast<std::uint32_t>(numbers_.size() - 1));
        });
    return numbers_[places_[root]];
  }

 private:
  using Traits = ScalarTraits<Number>;
  [[nodiscard]] Number computed(const ExpressionNode& node) {
    const auto part = [&](std::uint32_t at) -> const Number& { return numbers_[places_[at]]; };
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
      case Step::tangent:
        return tanh_of<Number>(part(node.left));
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
  NodeMap& places_;
  std::deque<Number> numbers_;
};

}  // namespace attest
