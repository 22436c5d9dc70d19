#include "properties/diagnosis/arithmetic/probe_sums.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "properties/diagnosis/arithmetic/summation_tree.h"
#include "properties/generators/stream.h"

namespace attest {
namespace {

using Places = std::array<std::int64_t, 3>;
/// Sums of so many terms each, asked of the kernel.
using AskSums = std::function<std::optional<std::vector<double>>(const std::vector<SumTerms>&)>;

/// How a sum rounds, as 1 + small - 1 shows it.
struct Rounded {
  int bits = 0;          ///< from how many on the small one is lost; 0: not before `asked`
  int asked = 0;         ///< the most bits that were asked
  bool nearest = true;   ///< a little more than half of the last bit is not lost
  bool answered = true;  ///< the kernel answered with numbers
  bool even = true;      ///< 1 - 1 is 0 at all of the places
};

/// All orders of 1, small and -1 at three places: in one of them at least 1 and the small one are added first.
std::vector<SumTerms> orders_of(const Places& places, double large, double small) {
  std::vector<SumTerms> all;
  std::array<int, 3> order{0, 1, 2};
  do {
    all.push_back({{places[static_cast<std::size_t>(order[0])], large},
                   {places[static_cast<std::size_t>(order[1])], small},
                   {places[static_cast<std::size_t>(order[2])], -large}});
  } while (std::ranges::next_permutation(order).found);
  return all;
}

/// `large_of(p)`: a number beside which one 2^-p as large is asked about.
Rounded rounding_of(const AskSums& ask, const Places& places, int most, const std::function<double(int)>& large_of) {
  Rounded found{.bits = 0, .asked = most};
  std::vector<SumTerms> sums;
  for (const auto& [i, j] : {std::pair(0U, 1U), std::pair(1U, 2U), std::pair(0U, 2U)})
    sums.push_back({{places[i], large_of(5)}, {places[j], -large_of(5)}});
  const auto nothing = ask(sums);
  found.answered = nothing.has_value();
  found.even = !nothing || std::ranges::all_of(*nothing, [](double left) { return left == 0; });
  if (!found.answered || !found.even) return found;
  sums.clear();
  for (int p = 5; p <= most; ++p) {
    const auto some = orders_of(places, large_of(p), std::ldexp(large_of(p), -p));
    sums.insert(sums.end(), some.begin(), some.end());
  }
  const auto out = ask(sums);
  found.answered = out.has_value();
  if (!out) return found;
  for (std::size_t s = 0; s < out->size() && found.bits == 0; ++s) {
    const int p = 5 + static_cast<int>(s / 6);
    // Lost, or overflowed on the way. What is left of it is a half at least.
    if (!(std::fabs((*out)[s]) >= std::ldexp(large_of(p), -p) / 4)) found.bits = p;
  }
  if (found.bits == 0) return found;
  // A weight of 1 that errs, or q times log2(e), is no power of two: half of its last bit is lost a bit later.
  int bits = found.bits;
  for (const DType format : {DType::f64, DType::f32, DType::f16, DType::bf16})
    if (found.bits == format_of(format).precision + 1) bits = found.bits - 1;
  sums.clear();
  for (const double sign : {1.0, -1.0}) {
    const double large = sign * large_of(found.bits);
    const auto some = orders_of(places, large, 1.125 * std::ldexp(large, -bits));
    sums.insert(sums.end(), some.begin(), some.end());
  }
  const auto beyond_half = ask(sums);
  found.answered = beyond_half.has_value();
  if (!beyond_half) return found;
  for (const double left : *beyond_half)
    if (!(std::fabs(left) >= std::ldexp(large_of(found.bits), -found.bits) / 4)) found.nearest = false;
  return found;
}

std::string words_of(const Rounded& r) {
  if (!r.answered) return "no answer";
  if (r.bits == 0) return fmt::format("more than {} bits", r.asked);
  return fmt::format("{} bits, rounded {}", r.bits, r.nearest ? "to nearest" : "toward zero");
}

/// Of a sum that keeps that much.
DType format_of_sum(const Rounded& r) {
  return format_of_bits(r.bits == 0 ? r.asked : r.bits);
}

/// Terms that are looked at in a sum of n: the first ones, some around the ends of usual blocks, the last ones, and
/// others between.
std::vector<std::int64_t> looked_at(std::int64_t n) {
  std::set<std::int64_t> seen;
  if (n <= most_terms) {
    for (std::int64_t i = 0; i < n; ++i) seen.insert(i);
    return {seen.begin(), seen.end()};
  }
  for (std::int64_t i = 0; i < 18; ++i) seen.insert(i);
  for (const std::int64_t edge : {n, n / 2, std::int64_t{32}, std::int64_t{64}, std::int64_t{128}, std::int64_t{256}})
    for (std::int64_t i = edge - 2; i < edge + 2; ++i)
      if (i < n) seen.insert(i);
  Stream stream(static_cast<std::uint64_t>(n));
  while (seen.size() < most_terms) seen.insert(stream.below(n));
  return {seen.begin(), seen.end()};
}

/// What is known of the order of a sum of some length.
struct Seen {
  std::int64_t terms = 0, rows = 1;  ///< and of so many queries
  std::vector<std::int64_t> at;
  std::optional<SummationTree> tree;
};

/// The sizes of nodes that `asked` shows: sums of M at the first of a pair, -M at the second, `unit` elsewhere.
std::optional<SummationTree> tree_at(const std::vector<std::int64_t>& at, double large, double unit,
                                     const AskSums& asked) {
  const auto terms = static_cast<int>(at.size());
  bool first = true;
  return find_summation_tree(terms, [&](const auto& pairs) -> std::optional<std::vector<int>> {
    std::vector<SumTerms> sums;
    for (const auto& [i, j] : pairs) {
      SumTerms& sum = sums.emplace_back();
      for (int k = 0; k < terms; ++k)
        sum.push_back({at[static_cast<std::size_t>(k)], k == i ? large : k == j ? -large : unit});
    }
    const auto out = asked(sums);
    // A sum whose order changes from call to call has none.
    if (!out || (first && asked(sums) != out)) return std::nullopt;
    first = false;
    std::vector<int> sizes;
    for (const double sum : *out) {
      const double left = sum / unit, whole = std::round(left);
      if (!(std::fabs(left - whole) < 0.3) || whole < 0 || whole > terms - 2) return std::nullopt;
      sizes.push_back(terms - static_cast<int>(whole));
    }
    return sizes;
  });
}

std::vector<SummationOrder> fitting(const std::vector<SummationOrder>& orders, const Seen& seen) {
  std::vector<SummationOrder> fit;
  for (const SummationOrder& order : orders)
    if (seen.tree && tree_of(order, seen.terms, seen.at) == *seen.tree) fit.push_back(order);
  return fit;
}

/// Without those that are another one at that number of terms, and at fewer.
std::vector<SummationOrder> different(const std::vector<SummationOrder>& orders, std::int64_t terms) {
  std::vector<SummationOrder> some;
  std::set<std::vector<std::uint64_t>> known;
  for (const SummationOrder& order : orders) {
    std::vector<std::uint64_t> prints;
    for (const std::int64_t n : {terms / 7, terms / 3, terms - terms / 9, terms})
      if (n > 1) prints.push_back(fingerprint_of(order, n));
    if (known.insert(std::move(prints)).second) some.push_back(order);
  }
  return some;
}

std::string words_of(const std::vector<SummationOrder>& orders) {
  if (orders.empty()) return "in an order that is none of the known ones";
  if (orders.size() == 1) return words_of(orders[0]);
  return fmt::format("{}, or {}{}: not told apart", words_of(orders[0]), words_of(orders[1]),
                     orders.size() > 2 ? fmt::format(" or {} other orders", orders.size() - 2) : "");
}

/// The order of sums of several lengths.
struct FoundOrder {
  std::vector<SummationOrder> fit;  ///< that fit every length
  std::string found, evidence;
};

FoundOrder order_of(const std::vector<Seen>& all, std::string_view terms) {
  FoundOrder order;
  std::vector<std::string> by_length, lengths;
  order.fit = known_orders();
  for (const Seen& seen : all) {
    order.fit = fitting(order.fit, seen);
    const std::string rows = seen.rows > 1 ? fmt::format(" of {} queries", seen.rows) : "";
    lengths.push_back(fmt::format("{}{}", seen.terms, rows));
    by_length.push_back(
        fmt::format("{} {}{}: {}", seen.terms, terms, rows,
                    seen.tree ? words_of(different(fitting(known_orders(), seen), seen.terms)) : "no order came out"));
  }
  order.evidence = fmt::format(
      "Of {} {}, M in the place of one and -M in that of another (huge powers of two) left as many small terms as are "
      "added outside of the subtree of the two (FPRev, Xie et al. 2025), and all pairs together make the tree.",
      fmt::join(lengths, ", then "), terms);
  if (!order.fit.empty()) {
    order.found = words_of(different(order.fit, std::ranges::max(all, {}, &Seen::terms).terms));
    order.evidence += fmt::format(" Every length shows {}; {} other orders make other trees.", order.found,
                                  known_orders().size() - order.fit.size());
  } else {
    order.found = "not told apart: " + fmt::format("{}", fmt::join(by_length, "; "));
    order.evidence += " No known order makes the trees of all lengths: nothing is claimed.";
  }
  return order;
}

/// The words for the depth that no order that fits exceeds; nothing: any order.
std::optional<BlockedSums> loosest_depth(const std::vector<SummationOrder>& orders) {
  for (const SummationOrder& one : orders) {
    const std::optional<BlockedSums> depth = declared_depth(one);
    if (!depth) return std::nullopt;
    Arithmetic a;
    a.blocked_sums = *depth;
    const bool covers = std::ranges::all_of(orders, [&](const SummationOrder& other) {
      for (const std::int64_t n : {3, 17, 63, 65, 200, 1000, 4097, 9999})
        if (depth_of(other, n) > accumulation_depth(a, n, n)) return false;
      return true;
    });
    if (covers) return depth;
  }
  return std::nullopt;
}

class SumProber {
 public:
  SumProber(ArithmeticQuestions& ask, ProbedArithmetic& probed) : ask_(ask), probed_(probed), a_(probed.declare) {}

  void run() {
    const Arithmetic before = a_;
    const Rounded products = ask_products();
    const Rounded values = ask_values();
    const bool truncates = (products.bits > 0 && !products.nearest) || (values.bits > 0 && !values.nearest);
    if (products.answered && values.answered) a_.rounding = truncates ? Rounding::toward_zero : Rounding::nearest;
    note({.question = "rounding of sums",
          .declared = std::string(name_of(before.rounding)),
          .found = std::string(name_of(a_.rounding)),
          .evidence = fmt::format("1 + x - 1 was asked in every order, x being 9/16 of the last bit of 1: {} "
                                  "with either sign. {}",
                                  truncates ? "it is lost" : "it is not lost",
                                  truncates ? "A sum that rounds to nearest would keep it."
                                            : "A sum that rounds toward zero would lose it."),
          .contradicts = truncates && before.rounding == Rounding::nearest});
    ask_order_of_products(products);
    ask_order_of_values(values);
  }

 private:
  void note(ArithmeticFinding finding) { probed_.findings.push_back(std::move(finding)); }

  /// Of q.k, over few dimensions and over many.
  Rounded ask_products() {
    const int most = ask_.is_short() ? 26 : 54;
    const auto large = [&](int p) { return std::ldexp(1.0, p); };
    std::vector<std::string> words;
    std::optional<Rounded> least;
    std::int64_t last = 0;
    for (const std::int64_t wanted : {4, 64, 256}) {
      const auto dk = ask_.head_dim_from(wanted);
      if (!dk || *dk == last) continue;
      last = *dk;
      const Rounded one =
          rounding_of([&](const auto& sums) { return ask_.products(sums, *dk); }, {0, *dk / 2, *dk - 1}, most, large);
      words.push_back(fmt::format("{} over {} dimensions", words_of(one), *dk));
      join(least, one);
    }
    note_format("sums q.k and scores", a_.score_sums, *least,
                fmt::format("2^p + 1 - 2^p was asked as q.k, in every order of the three, for p from 5 to {}: {}.",
                            most, fmt::join(words, ", ")));
    return *least;
  }

  /// Of weights times values, over few keys and over many.
  Rounded ask_values() {
    const int most_exponent = std::min(std::ilogb(format_of(ask_.values()).largest), 60);
    const int most = ask_.values() == DType::f16 ? 28 : 54;
    std::vector<std::string> words;
    std::optional<Rounded> least;
    std::int64_t last = 0;
    for (const std::int64_t wanted : {4, 256, 2048}) {
      const auto keys = ask_.keys_from(wanted);
      if (!keys || *keys == last) continue;
      last = *keys;

      const auto asked = [&](const Places& at) {
        std::set<std::int64_t> visible{at.begin(), at.end()};
        for (std::int64_t j = at[1] - 1; visible.size() < 4; --j)
          visible.insert(j);  // a sum of 4 weights divides exactly
        return rounding_of([&](const auto& sums) { return ask_.sums(sums, *keys, {visible.begin(), visible.end()}); },
                           at, most, [&](int) { return std::ldexp(1.0, most_exponent); });
      };
      Rounded one = asked({0, *keys / 2, *keys - 1});
      // Where exp(0) errs, equal scores have equal weights in one block alone.
      const bool apart = one.even;
      if (!apart) one = asked({*keys - 3, *keys - 2, *keys - 1});
      if (!one.even) one.answered = false;
      words.push_back(fmt::format("{} over {} keys{}", words_of(one), *keys,
                                  apart ? "" : ", at neighbours, as equal scores far apart have other weights"));
      join(least, one);
    }
    note_format("sums over keys", a_.accumulate, *least,
                fmt::format("Keys of equal weight have the values 1, 2^-p and -1, in every order of the three, for p "
                            "from 5 to {}: {}.",
                            most, fmt::join(words, ", ")));
    return *least;
  }

  /// What holds of both.
  static void join(std::optional<Rounded>& least, const Rounded& one) {
    if (!least) {
      least = one;
      return;
    }
    least->answered = least->answered && one.answered;
    least->nearest = least->nearest && one.nearest;
    if (one.bits > 0 && (least->bits == 0 || one.bits < least->bits)) least->bits = one.bits;
  }

  void note_format(std::string question, DType& declared, const Rounded& found, std::string evidence) {
    const DType before = declared;
    ArithmeticFinding finding{.question = std::move(question),
                              .declared = std::string(name_of(before)),
                              .found = ask_.failure().empty()
                                           ? "not told apart: keys of one score have different weights"
                                           : "not asked: " + ask_.failure(),
                              .evidence = std::move(evidence)};
    // The narrowest sums there are have 8 bits: fewer are no sum of what was asked.
    const bool is_sum = found.answered && (found.bits == 0 || found.bits >= format_of(DType::bf16).precision);
    probed_.readable = probed_.readable && is_sum;
    if (found.answered && !is_sum) {
      finding.found = fmt::format("not told apart: {}, which no format has", words_of(found));
    } else if (found.answered) {
      declared = format_of_sum(found);
      finding.found = fmt::format("{} ({})", name_of(declared), words_of(found));
      finding.evidence +=
          found.bits > 0 ? fmt::format(" A format of more bits would keep 2^-{}, one of fewer lose more.", found.bits)
                         : fmt::format(" Nothing was lost: a format of fewer bits would lose some.");
      finding.contradicts = format_of(declared).unit > format_of(before).unit;
    }
    note(std::move(finding));
  }

  /// Small terms of a sum of `terms`, and the large ones beside which they are lost; nothing where the format of the
  /// terms does not reach that far.
  struct Sizes {
    double large, unit;
  };
  [[nodiscard]] static std::optional<Sizes> sizes(const Rounded& rounded, double unit, double most, std::size_t terms) {
    if (!rounded.answered || rounded.bits == 0) return std::nullopt;
    const double large = std::ldexp(unit, rounded.bits + 2) * static_cast<double>(std::bit_ceil(terms));
    return large <= most ? std::optional(Sizes{large, unit}) : std::nullopt;
  }

  void ask_order_of_products(const Rounded& rounded) {
    ArithmeticFinding finding{.question = "order of q.k", .declared = "any", .found = {}, .evidence = {}};
    std::vector<Seen> all;
    // In f16 a product of two numbers reaches 2^29; f32 holds what its products make.
    const double most = ask_.is_short() ? 0x1p28 : ask_.dtype() == DType::f64 ? 0x1p500 : 0x1p120;
    for (const std::int64_t wanted : {16, 64, 256}) {
      const auto dk = ask_.head_dim_from(wanted);
      if (!dk || (!all.empty() && all.back().terms == *dk)) continue;
      Seen seen{.terms = *dk, .at = looked_at(*dk), .tree = {}};
      // All of them together make a score of a few units.
      const auto size = sizes(rounded, 4.0 / static_cast<double>(std::bit_ceil(seen.at.size())), most, seen.at.size());
      if (!size || !rounded.nearest) {
        finding.found = !rounded.nearest ? "not asked: a small term beside -M is not lost where sums round toward zero"
                                         : "not asked: the terms do not reach far enough";
        note(std::move(finding));
        return;
      }
      seen.tree =
          tree_at(seen.at, -size->large, -size->unit, [&](const auto& sums) { return ask_.products(sums, *dk); });
      all.push_back(std::move(seen));
    }
    const FoundOrder order = order_of(all, "products");
    finding.found = order.found;
    finding.evidence = order.evidence + " The bound of q.k holds for any order: no key says it.";
    note(std::move(finding));
  }

  void ask_order_of_values(const Rounded& rounded) {
    const Arithmetic before = a_;
    a_.summation_depth.reset();
    a_.blocked_sums.reset();
    ArithmeticFinding finding{
        .question = "order over keys", .declared = depth_words(before), .found = {}, .evidence = {}};
    std::vector<Seen> all;
    const double most = std::ldexp(1.0, std::min(std::ilogb(format_of(ask_.values()).largest), 100));
    // A product of matrices may be another one of several rows.
    for (const auto& [wanted, rows] : {std::pair(64, 1), std::pair(1000, 1), std::pair(4097, 1), std::pair(300, 17)}) {
      ask_.ask_rows(rows);
      const auto keys = ask_.keys_near(wanted);
      const auto same = [&](const Seen& one) { return keys == one.terms && ask_.rows(*keys) == one.rows; };
      if (!keys || std::ranges::any_of(all, same)) continue;
      Seen seen{.terms = *keys, .rows = ask_.rows(*keys), .at = looked_at(*keys), .tree = {}};
      const double unit = most / std::ldexp(static_cast<double>(std::bit_ceil(seen.at.size())), rounded.bits + 2);
      const auto size = sizes(rounded, unit, most, seen.at.size());
      if (!size || !rounded.nearest) {
        finding.found = !rounded.nearest ? "not asked: a small term beside -M is not lost where sums round toward zero"
                                         : "not asked: the values do not reach far enough";
        ask_.ask_rows(1);
        note(std::move(finding));
        return;
      }
      seen.tree =
          tree_at(seen.at, size->large, size->unit, [&](const auto& sums) { return ask_.sums(sums, *keys, seen.at); });
      all.push_back(std::move(seen));
    }
    ask_.ask_rows(1);
    const std::int64_t longest = std::ranges::max(all, {}, &Seen::terms).terms;
    const FoundOrder order = order_of(all, "keys");
    finding.found = order.found;
    finding.evidence = order.evidence;
    if (const auto depth = order.fit.empty() ? std::nullopt : loosest_depth(order.fit)) {
      std::string why = why_other_denominator(order.fit.front(), longest, rounded);
      if (why.empty()) {
        a_.blocked_sums = *depth;
        finding.evidence += " The denominator loses as much as that order loses.";
      } else {
        finding.evidence += fmt::format(" {}: sums in any order are declared.", why);
      }
    }
    finding.contradicts = exceeds(order.fit, before);
    note(std::move(finding));
  }

  static std::string depth_words(const Arithmetic& a) {
    if (a.summation_depth) return fmt::format("at most {} additions", *a.summation_depth);
    if (!a.blocked_sums) return "any";
    return fmt::format("blocks of {}, {} additions in each, then {}", a.blocked_sums->block, a.blocked_sums->depth,
                       a.blocked_sums->pairwise ? "pairwise" : "one after another");
  }

  /// Every order that is possible makes more additions than are declared.
  static bool exceeds(const std::vector<SummationOrder>& orders, const Arithmetic& declared) {
    return !orders.empty() && std::ranges::all_of(orders, [&](const SummationOrder& order) {
      return depth_of(order, 1000) > accumulation_depth(declared, 1000, 1000);
    });
  }

  /// Whether the sum of the weights loses as much as that order does; else why it is not known to.
  std::string why_other_denominator(const SummationOrder& order, std::int64_t keys, const Rounded& rounded) {
    const int bits = rounded.bits;
    if (format_of(ask_.output()).precision < bits - 1)
      return "The order of the denominator does not show in an output of fewer bits";
    const auto round = [bits](double x) {
      if (x == 0) return x;
      const double last = std::ldexp(1.0, std::ilogb(x) + 1 - bits);
      return std::nearbyint(x / last) * last;
    };
    // Weights that are lost one by one beside 1, and not where some are added up first: 0.4 of its last bit.
    const double score = std::round(std::log(0.4 * std::ldexp(2.0, -bits)) * 4) / 4, weight = std::exp(score);
    for (const std::int64_t top : {std::int64_t{0}, keys / 3, keys - 1}) {
      for (const std::int64_t step : {1, 2, 8}) {
        std::vector<std::int64_t> at;
        std::vector<double> terms(static_cast<std::size_t>(keys), 0.0);
        for (std::int64_t j = 0; j < keys; j += step)
          if (j != top) at.push_back(j), terms[static_cast<std::size_t>(j)] = weight;
        terms[static_cast<std::size_t>(top)] = 1;
        const auto out = ask_.denominator(top, score, at, keys);
        if (!out) return "The denominator was not answered";
        const double found = 1 / *out - 1, expected = sum_in(order, terms, round) - 1;
        const double all = weight * static_cast<double>(at.size());
        if (!(std::fabs(found - expected) <= 0.15 * all + 4 * format_of(ask_.output()).unit))
          return fmt::format(
              "The denominator sums otherwise: of {} small weights beside 1 at key {} it keeps {:.2f}, "
              "that order {:.2f}",
              at.size(), top, found / all, expected / all);
      }
    }
    return {};
  }

  ArithmeticQuestions& ask_;
  ProbedArithmetic& probed_;
  Arithmetic& a_;
};

}  // namespace

DType format_of_bits(int bits) {
  for (const DType format : {DType::f64, DType::f32, DType::f16})
    if (bits >= format_of(format).precision) return format;
  return DType::bf16;
}

DType coarser(DType a, DType b) {
  return format_of(a).unit >= format_of(b).unit ? a : b;
}

void ask_sums(ArithmeticQuestions& ask, ProbedArithmetic& probed) {
  SumProber(ask, probed).run();
}

}  // namespace attest
