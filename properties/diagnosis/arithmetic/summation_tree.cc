#include "properties/diagnosis/arithmetic/summation_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstddef>

#include "properties/generators/stream.h"

namespace attest {
namespace {

using Within = SummationOrder::Within;

/// Adds values in any of the orders; Value is whatever `add` adds, and empty ones are none.
template <class Value, class Add>
class Adder {
 public:
  explicit Adder(Add& add) : add_(add) {}

  Value sum(const SummationOrder& order, std::span<const Value> terms) {
    const auto n = static_cast<std::int64_t>(terms.size());
    const std::int64_t parts = order.block > 0 ? (n + order.block - 1) / order.block : order.parts;
    if (parts <= 1) return part(order, terms);
    std::vector<Value> sums;
    for (std::int64_t p = 0; p < parts; ++p) {
      const std::int64_t begin = order.block > 0 ? p * order.block : n * p / parts;
      const std::int64_t end = order.block > 0 ? std::min(n, begin + order.block) : n * (p + 1) / parts;
      if (begin < end)
        sums.push_back(
            part(order, terms.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin))));
    }
    return plain(order.merged, sums);
  }

 private:
  Value part(const SummationOrder& order, std::span<const Value> terms) {
    if (order.within != Within::lanes) return plain(order.within, terms);
    const auto lanes = static_cast<std::size_t>(std::max<std::int64_t>(order.lanes, 1));
    const std::size_t whole = order.tail_apart ? terms.size() / lanes * lanes : terms.size();
    std::vector<Value> sums;
    for (std::size_t i = 0; i < whole; ++i) {
      if (i < lanes) {
        sums.push_back(terms[i]);
      } else {
        sums[i % lanes] = add_(sums[i % lanes], terms[i]);
      }
    }
    std::vector<Value> ends;
    if (!sums.empty()) ends.push_back(plain(order.lanes_merged, sums));
    ends.insert(ends.end(), terms.begin() + static_cast<std::ptrdiff_t>(whole), terms.end());
    return plain(Within::sequential, ends);
  }

  Value plain(Within within, std::span<const Value> terms) {
    if (terms.size() == 1) return terms[0];
    const std::size_t n = terms.size();
    switch (within) {
      case Within::sequential:
      case Within::lanes: {
        Value total = terms[0];
        for (std::size_t i = 1; i < n; ++i) total = add_(total, terms[i]);
        return total;
      }
      case Within::backwards: {
        Value total = terms[n - 1];
        for (std::size_t i = n - 1; i-- > 0;) total = add_(total, terms[i]);
        return total;
      }
      case Within::pairwise:
        return halves(within, terms, n / 2);
      case Within::adjacent:
        return halves(within, terms, std::bit_ceil(n) / 2);
      case Within::strided:
        break;
    }
    const std::size_t half = (n + 1) / 2;
    std::vector<Value> sums(terms.begin(), terms.begin() + static_cast<std::ptrdiff_t>(half));
    for (std::size_t i = half; i < n; ++i) sums[i - half] = add_(sums[i - half], terms[i]);
    return plain(within, sums);
  }

  Value halves(Within within, std::span<const Value> terms, std::size_t half) {
    const Value left = plain(within, terms.first(half));
    return add_(left, plain(within, terms.subspan(half)));
  }

  Add& add_;
};

template <class Value, class Add>
Value sum_of(const SummationOrder& order, std::span<const Value> terms, Add add) {
  return Adder<Value, Add>(add).sum(order, terms);
}

/// Adds a node where it joins terms that were apart.
void note_node(SummationTree& tree, std::uint64_t node, std::uint64_t left, std::uint64_t right) {
  if (std::popcount(node) > 1 && node != left && node != right) tree.push_back(node);
}

std::string words_of(Within within) {
  switch (within) {
    case Within::sequential:
      return "one after another";
    case Within::backwards:
      return "from the last to the first";
    case Within::pairwise:
      return "pairwise, by halves";
    case Within::adjacent:
      return "pairwise, neighbours first";
    case Within::strided:
      return "pairwise, i with i + n/2";
    case Within::lanes:
      break;
  }
  return "in lanes";
}

/// The terms of a node whose tree is still to be found, and the size of the node above it.
struct Pending {
  std::vector<int> terms;
  int above;
};

}  // namespace

std::optional<SummationTree> find_summation_tree(int terms, const NodeSizes& sizes) {
  SummationTree tree;
  std::vector<Pending> pending(1);
  for (int i = 0; i < terms; ++i) pending[0].terms.push_back(i);
  pending[0].above = terms + 1;
  for (bool first = true; !pending.empty(); first = !first) {
    // All questions of one depth at once, from the first term and from the last one in turn: each finds the usual
    // orders in a few rounds, and the other would peel one term off a round.
    std::vector<std::pair<int, int>> pairs;
    for (Pending& one : pending) {
      if (!first) std::ranges::reverse(one.terms);
      for (std::size_t k = 1; k < one.terms.size(); ++k) pairs.emplace_back(one.terms[0], one.terms[k]);
    }
    const std::optional<std::vector<int>> found = sizes(pairs);
    if (!found) return std::nullopt;
    std::vector<Pending> next;
    std::size_t at = 0;
    for (const Pending& one : pending) {
      std::vector<std::pair<int, int>> by_size;
      for (std::size_t k = 1; k < one.terms.size(); ++k) by_size.emplace_back((*found)[at++], one.terms[k]);
      std::ranges::sort(by_size);
      std::uint64_t node = std::uint64_t{1} << static_cast<unsigned>(one.terms[0]);
      for (std::size_t k = 0; k < by_size.size();) {
        const int size = by_size[k].first;
        Pending group{{}, size};
        for (; k < by_size.size() && by_size[k].first == size; ++k) group.terms.push_back(by_size[k].second);
        std::ranges::sort(group.terms);
        if (size > one.above) return std::nullopt;
        // As large as the node above: other branches of that one.
        if (size < one.above) {
          for (const int term : group.terms) node |= std::uint64_t{1} << static_cast<unsigned>(term);
          if (std::popcount(node) != size) return std::nullopt;
          tree.push_back(node);
        }
        if (group.terms.size() > 1) next.push_back(std::move(group));
      }
    }
    pending = std::move(next);
  }
  std::ranges::sort(tree);
  return tree;
}

std::string words_of(const SummationOrder& order) {
  std::string within = words_of(order.within);
  if (order.within == Within::lanes) {
    within = fmt::format("{} accumulators in turn, added {}{}", order.lanes, words_of(order.lanes_merged),
                         order.tail_apart ? ", the rest at the end" : "");
  }
  if (order.block == 0 && order.parts == 0) return within;
  const std::string parts =
      order.block > 0 ? fmt::format("blocks of {}", order.block) : fmt::format("{} equal parts", order.parts);
  return fmt::format("{}, each {}, the sums of them {}", parts, within, words_of(order.merged));
}

const std::vector<SummationOrder>& known_orders() {
  static const std::vector<SummationOrder> orders = [] {
    constexpr Within trees[] = {Within::pairwise, Within::adjacent, Within::strided};
    std::vector<SummationOrder> all{{.within = Within::sequential}, {.within = Within::backwards}};
    for (const Within within : trees) all.push_back({.within = within});
    const auto lanes = [&](SummationOrder order) {
      for (const std::int64_t n : {2, 4, 8, 16, 32, 64}) {
        for (const Within merged : {Within::sequential, Within::adjacent, Within::strided}) {
          if (n == 2 && merged != Within::sequential) continue;  // one addition
          for (const bool apart : {false, true}) {
            order.within = Within::lanes, order.lanes = n, order.lanes_merged = merged, order.tail_apart = apart;
            all.push_back(order);
          }
        }
      }
    };
    lanes({});
    for (const std::int64_t block : {2, 4, 8, 16, 32, 64, 128, 256, 512}) {
      for (const Within merged : {Within::sequential, Within::backwards, Within::pairwise, Within::adjacent}) {
        for (const Within within :
             {Within::sequential, Within::backwards, Within::pairwise, Within::adjacent, Within::strided})
          all.push_back({.within = within, .block = block, .merged = merged});
        if (merged == Within::sequential && block > 8) lanes({.block = block});
      }
    }
    for (std::int64_t parts = 2; parts <= 16; ++parts) {
      for (const Within merged : {Within::sequential, Within::adjacent}) {
        for (const Within within : {Within::sequential, Within::backwards})
          all.push_back({.within = within, .parts = parts, .merged = merged});
      }
    }
    return all;
  }();
  return orders;
}

SummationTree tree_of(const SummationOrder& order, std::int64_t terms, std::span<const std::int64_t> seen) {
  std::vector<std::uint64_t> masks(static_cast<std::size_t>(terms), 0);
  for (std::size_t bit = 0; bit < seen.size(); ++bit)
    masks[static_cast<std::size_t>(seen[bit])] = std::uint64_t{1} << bit;
  SummationTree tree;
  sum_of<std::uint64_t>(order, masks, [&](std::uint64_t a, std::uint64_t b) {
    note_node(tree, a | b, a, b);
    return a | b;
  });
  std::ranges::sort(tree);
  return tree;
}

std::uint64_t fingerprint_of(const SummationOrder& order, std::int64_t terms) {
  std::vector<std::uint64_t> leaves;
  leaves.reserve(static_cast<std::size_t>(terms));
  for (std::int64_t i = 0; i < terms; ++i) leaves.push_back(Stream(static_cast<std::uint64_t>(i)).next());
  // Of a and b as of b and a.
  return sum_of<std::uint64_t>(order, leaves, [](std::uint64_t a, std::uint64_t b) { return Stream(a + b).next(); });
}

std::int64_t depth_of(const SummationOrder& order, std::int64_t terms) {
  const std::vector<std::int64_t> none(static_cast<std::size_t>(terms), 0);
  return sum_of<std::int64_t>(order, none, [](std::int64_t a, std::int64_t b) { return std::max(a, b) + 1; });
}

double sum_in(const SummationOrder& order, std::span<const double> terms, const std::function<double(double)>& round) {
  return sum_of<double>(order, terms, [&](double a, double b) { return round(a + b); });
}

std::optional<BlockedSums> declared_depth(const SummationOrder& order) {
  const auto is_tree = [](Within within) {
    return within == Within::pairwise || within == Within::adjacent || within == Within::strided;
  };
  BlockedSums sums;
  if (order.block > 0) {
    sums = {.block = order.block, .depth = 1, .pairwise = is_tree(order.merged)};
  } else if (order.parts > 0) {
    sums = {.block = order.parts, .depth = 1, .pairwise = false};
  } else if (order.within == Within::lanes) {
    sums = {.block = order.lanes, .depth = 1, .pairwise = false};
  } else if (is_tree(order.within)) {
    sums = {.block = 1, .depth = 1, .pairwise = true};
  } else {
    return std::nullopt;
  }
  Arithmetic a;
  for (std::int64_t n = 2; n <= 10'000; n += n < 300 ? 1 : 97) {
    a.blocked_sums = sums;
    const std::int64_t made = depth_of(order, n), allowed = accumulation_depth(a, n, n);
    if (made > allowed) sums.depth += made - allowed;
  }
  return sums;
}

}  // namespace attest
