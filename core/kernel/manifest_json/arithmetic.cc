#include "core/kernel/manifest_json/arithmetic.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "core/kernel/manifest_json/dtypes.h"
#include "core/kernel/manifest_json/io.h"
#include "core/kernel/manifest_json/keys.h"
#include "core/problem/fields.h"

namespace attest {
namespace manifest_json {
namespace {

/// An approximate division takes a few; the bound grows with each.
constexpr WholeNumbers roundings{1, 64};

constexpr std::array<std::string_view, 2> merges{"sequential", "pairwise"};

/// Every value of `part` is one of `whole`: rounding from whole to part and back loses nothing the other way round.
bool contains(DType whole, DType part) {
  const Format& w = format_of(whole);
  const Format& p = format_of(part);
  return w.precision >= p.precision && w.min_subnormal <= p.min_subnormal && w.largest >= p.largest;
}

/// "scores", which says what "stored"."biased" does, and is not written.
void read_scores(const JsonObject& object, std::string_view key, Arithmetic& a) {
  DType format{};
  Reader io(object);
  io(key, format);
  const json* stored = object.find("stored");
  if (stored != nullptr && stored->contains("biased"))
    object.refuse(key, "\"stored\".\"biased\" says the same; state one of the two");
  // A format that holds every value of the sums rounds nothing.
  a.stored_biased = contains(format, a.score_sums) ? std::nullopt : std::optional(format);
}

void tell_blocked_sums(auto& io, auto& sums) {
  io("block", sums.block, extents);
  io("depth", sums.depth, extents);
  io.word("merges", merges, sums.pairwise);
}

ordered_json depth_json(const Arithmetic& a) {
  if (a.summation_depth) return *a.summation_depth;
  if (!a.blocked_sums) return "n";
  Writer io;
  tell_blocked_sums(io, *a.blocked_sums);
  return io.json();
}

void read_depth(const JsonObject& object, std::string_view key, Arithmetic& a) {
  const json& found = *object.find(key);
  a.summation_depth = std::nullopt;
  a.blocked_sums = std::nullopt;
  if (found.is_object()) {
    BlockedSums& sums = a.blocked_sums.emplace();
    const JsonObject blocks(found, object.path(key), keys_told_by([&](auto& io) { tell_blocked_sums(io, sums); }));
    if (blocks.find("block") == nullptr) blocks.refuse("block", "blocked sums state how many keys a block has");
    Reader io(blocks);
    tell_blocked_sums(io, sums);
    if (blocks.find("depth") == nullptr) sums.depth = sums.block;
  } else if (found.is_number()) {
    object.read(key, extents, a.summation_depth);
  } else if (found != "n") {
    object.refuse(key, "it must be \"n\", a whole number of at least 1, or an object with \"block\"");
  }
}

ordered_json tanh_json(const Arithmetic& a) {
  if (a.tanh.measure == TanhMeasure::unstated) return nullptr;
  return {{std::string(name_of(a.tanh.measure)), a.tanh.value}};
}

/// One number by its measure; tanh is no larger than 1, and a bound of that allows anything.
void read_tanh(const JsonObject& object, std::string_view key, Arithmetic& a) {
  const json& found = *object.find(key);
  const JsonObject inner(found, object.path(key), Words<TanhMeasure>::names);
  if (found.size() != 1)
    object.refuse(key, R"(it states one error, as {"ulp": 2.5}, {"relative": 5e-4} or {"absolute": 1e-6})");
  a.tanh.measure = *named<TanhMeasure>(found.begin().key());
  const bool ulp = a.tanh.measure == TanhMeasure::ulp;
  inner.read_positive(found.begin().key(), ulp ? 0.5 / format_of(a.score_sums).unit : 1.0,
                      "where tanh is wrong by as much as it is", a.tanh.value);
}

void tell_arithmetic(auto& io, auto& a) {
  io("score_sums", a.score_sums);
  io.object("stored", [&](auto& stored) {
    stored("raw", a.stored_raw);
    stored("scaled", a.stored_scaled);
    stored.if_stated(a.stored_capped.has_value(), "capped", a.stored_capped);
    stored("biased", a.stored_biased);
  });
  io.by("scores", a, [](const auto&) { return nullptr; }, read_scores);
  io("weights", a.weights);
  io("weights_in_denominator", a.weights_in_denominator);
  io("accumulate", a.accumulate);
  io("prescaled_q", a.prescaled_q);
  io("mask_format", a.mask_format);
  io("rounding", a.rounding);
  io.if_stated(a.max != MaxPolicy::unstated, "max", a.max);
  // u is half an ulp of 1: more ulp than 1/(2u), and exp is wrong by more than itself. A bound of that allows anything.
  io.positive(a.exp_ulp > 0, "exp_ulp", a.exp_ulp, 0.5 / format_of(a.score_sums).unit,
              fmt::format("where exp in {} is wrong by as much as it is", name_of(a.score_sums)));
  io.positive(a.max == MaxPolicy::lazy, "lazy_nats", a.lazy_nats, std::log(format_of(a.score_sums).largest),
              fmt::format("whose exp is the largest number of {}", name_of(a.score_sums)));
  io.by("tanh", a, tanh_json, read_tanh);
  const bool lags = a.max == MaxPolicy::lazy;
  io.require(!lags || a.lazy_nats > 0, "max", "a lazy maximum states by how much it may lag, as \"lazy_nats\": 8");
  io.require(lags || !io.states("lazy_nats"), "lazy_nats", "only \"max\": \"lazy\" has it");
  io("base2", a.base2);
  io("folded_exp2", a.folded_exp2);
  io.require(a.base2 || !a.folded_exp2 || !io.states("folded_exp2"), "folded_exp2",
             "with \"base2\": false there is no exp2 to fold into");
  io("split_merge", a.split_merge);
  io("normalise_first", a.normalise_first);
  io("flushes_subnormals", a.flushes_subnormals);
  io("flushes_inputs", a.flushes_inputs);
  io.by("summation_depth", a, depth_json, read_depth);
  io("block", a.block, WholeNumbers{0, extents.most});
  io("bias_in_sum", a.bias_in_sum);
  io("division_roundings", a.division_roundings, roundings);
}

void tell_backward_arithmetic(auto& io, auto& a) {
  io("dot", a.dot);
  io("accumulate", a.accumulate);
  io.object("stored", [&](auto& stored) {
    stored("weights", a.weights);
    stored("dp", a.of_weights);
    stored("ds", a.of_scores);
  });
  io("rounded_weights_in_ds", a.rounded_weights_in_scores);
  io("delta_in_sum", a.delta_in_sum);
  io("scale_before_rounding", a.scale_before_rounding);
  io("late_dropout", a.late_dropout);
  io("group_partials", a.group_partials);
  io("sink_terms", a.sink_terms);
}

/// "64", ">=64", "<64", "64..128", of numbers from `least` on.
std::string text_of(const ExtentRange& range, std::int64_t least) {
  if (range.least == range.most) return fmt::format("{}", range.least);
  if (range.most == any_extent) return fmt::format(">={}", range.least);
  return range.least <= least ? fmt::format("<={}", range.most) : fmt::format("{}..{}", range.least, range.most);
}

/// Nothing where the text is no range, or one without a number.
std::optional<ExtentRange> range_of(std::string_view text, std::int64_t least) {
  const auto number = [](std::string_view digits) -> std::optional<std::int64_t> {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size() || value < 0 || value > extents.most)
      return std::nullopt;
    return value;
  };
  const auto made = [&](std::optional<std::int64_t> from, std::optional<std::int64_t> to) {
    if (!from || !to || *to < std::max(*from, least)) return std::optional<ExtentRange>();
    return std::optional(ExtentRange{std::max(*from, least), *to});
  };
  const auto shifted = [](std::optional<std::int64_t> n, std::int64_t by) {
    return n ? std::optional(*n + by) : std::nullopt;
  };
  if (const std::size_t dots = text.find(".."); dots != std::string_view::npos)
    return made(number(text.substr(0, dots)), number(text.substr(dots + 2)));
  if (text.starts_with(">=")) return made(number(text.substr(2)), any_extent);
  if (text.starts_with(">")) return made(shifted(number(text.substr(1)), 1), any_extent);
  if (text.starts_with("<=")) return made(least, number(text.substr(2)));
  if (text.starts_with("<")) return made(least, shifted(number(text.substr(1)), -1));
  return made(number(text), number(text));
}

void tell_range(auto& io, std::string_view key, auto& range, std::int64_t least) {
  io.by(
      key, range,
      [least](const ExtentRange& of) {
        const bool all = of.least <= least && of.most == any_extent;
        return all ? ordered_json(nullptr) : ordered_json(text_of(of, least));
      },
      [least](const JsonObject& object, std::string_view name, ExtentRange& of) {
        std::string text;
        object.read(name, text);
        const std::optional<ExtentRange> found = range_of(text, least);
        if (!found) object.refuse(name, R"(it must be as "64", ">=64", "<64" or "64..128", and hold a number)");
        of = *found;
      });
}

void tell_when(auto& io, auto& path) {
  tell_range(io, "queries", path.queries, 0);
  tell_range(io, "keys", path.keys, 0);
  tell_range(io, "head_dim", path.head_dim, 1);
}

/// What `a` is not said to be stays as it is.
void read_over(const JsonObject& object, Arithmetic& a) {
  Reader io(object);
  tell_arithmetic(io, a);
  if (!a.base2) a.folded_exp2 = false;
}

ArithmeticPath read_path(const json& value, const std::string& where, const Arithmetic& usual) {
  ArithmeticPath path{.arithmetic = usual};
  std::vector<std::string_view> keys = keys_told_by([&](auto& io) { tell_arithmetic(io, path.arithmetic); });
  keys.emplace_back("when");
  const JsonObject object(value, where, keys);
  const json* when = object.find("when");
  constexpr std::string_view rule = "a path states its shapes, as {\"queries\": \">=64\"}";
  if (when == nullptr || when->empty()) object.refuse("when", rule);
  const JsonObject shapes(*when, object.path("when"), keys_told_by([&](auto& io) { tell_when(io, path); }));
  Reader io(shapes);
  tell_when(io, path);
  read_over(object, path.arithmetic);
  return path;
}

/// The arithmetic for `dtype` as `value` declares it over the universal one, and its paths, each over that.
void read_arithmetic(const json& value, const std::string& where, DType dtype, Arithmetics& all) {
  const JsonObject object(value, where, arithmetic_keys());
  Arithmetic& usual = all.usual[dtype] = universal_arithmetic(dtype, dtype);
  read_over(object, usual);
  if (const json* backward = object.find("backward")) {
    BackwardArithmetic& a = all.backward[dtype] = universal_backward_arithmetic(usual);
    const JsonObject inner(*backward, object.path("backward"),
                           keys_told_by([&](auto& io) { tell_backward_arithmetic(io, a); }));
    Reader io(inner);
    tell_backward_arithmetic(io, a);
  }
  const json* paths = object.find("paths");
  if (paths == nullptr) return;
  if (!paths->is_array()) object.refuse("paths", "it must be an array of objects with \"when\"");
  for (std::size_t i = 0; i < paths->size(); ++i) {
    const std::string at = fmt::format("{}[{}]", object.path("paths"), i);
    all.paths[dtype].push_back(read_path((*paths)[i], at, usual));
  }
}

ordered_json json_of(const Arithmetic& a) {
  Writer io;
  tell_arithmetic(io, a);
  return io.json();
}

}  // namespace

ordered_json arithmetics_json(const Arithmetics& all) {
  ordered_json by_name;
  for (const auto& [dtype, usual] : all.usual) {
    ordered_json& one = by_name[std::string(name_of(dtype))] = json_of(usual);
    if (const auto backward = all.backward.find(dtype); backward != all.backward.end()) {
      Writer io;
      tell_backward_arithmetic(io, backward->second);
      one["backward"] = io.json();
    }
    const auto paths = all.paths.find(dtype);
    if (paths == all.paths.end()) continue;
    for (const ArithmeticPath& path : paths->second) {
      Writer when;
      tell_when(when, path);
      ordered_json written{{"when", when.json()}};
      written.update(json_of(path.arithmetic));
      one["paths"].push_back(std::move(written));
    }
  }
  return by_name;
}

void read_arithmetics(const JsonObject& object, std::string_view key, const Manifest& m, Arithmetics& all) {
  const json& found = *object.find(key);
  if (!found.is_object() || std::ranges::none_of(dtypes, [&](auto name) { return found.contains(name); })) {
    for (const DType dtype : m.dtypes) read_arithmetic(found, object.path(key), dtype, all);
    return;
  }
  const JsonObject stated = by_dtype(object, key, m);
  for (const DType dtype : m.dtypes) {
    const std::string_view name = name_of(dtype);
    if (const json* one = stated.find(name)) read_arithmetic(*one, stated.path(name), dtype, all);
  }
}

void refuse_rounded_inputs(const JsonObject& object, const Manifest& m) {
  const auto refuse_in = [&](const Arithmetic& a, DType q) {
    const auto pairs = m.kv_dtypes.find(q);
    if (pairs == m.kv_dtypes.end()) return;
    for (const auto& [k, v] : pairs->second) {
      if (contains(a.score_sums, k) && contains(a.accumulate, v)) continue;
      object.refuse(
          "kv_dtypes",
          fmt::format("the arithmetic of {} sums q.k in {} and weighted values in {}, which do not hold every "
                      "number of k in {} and v in {}",
                      name_of(q), name_of(a.score_sums), name_of(a.accumulate), name_of(k), name_of(v)));
    }
  };
  for (const Arithmetics* const all : {&m.arithmetic, &m.promises}) {
    for (const auto& [q, usual] : all->usual) refuse_in(usual, q);
    for (const auto& [q, paths] : all->paths)
      for (const ArithmeticPath& path : paths) refuse_in(path.arithmetic, q);
  }
}

void refuse_caps_unsaid(const JsonObject& object, const Manifest& m) {
  if (m.variants.contains(softcap_variant.name)) return;
  const auto refuse_in = [&](std::string_view key, const Arithmetic& a) {
    if (a.tanh.measure != TanhMeasure::unstated || a.stored_capped)
      object.refuse(key, "it states \"tanh\" or \"stored\".\"capped\", and \"variants\" lists no \"softcap\"");
  };
  for (const auto& [key, all] : {std::pair("arithmetic", &m.arithmetic), std::pair("promises", &m.promises)}) {
    for (const auto& [q, usual] : all->usual) refuse_in(key, usual);
    for (const auto& [q, paths] : all->paths)
      for (const ArithmeticPath& path : paths) refuse_in(key, path.arithmetic);
  }
}

}  // namespace manifest_json

std::vector<std::string_view> arithmetic_keys() {
  Arithmetic a;
  std::vector<std::string_view> keys =
      manifest_json::keys_told_by([&](auto& io) { manifest_json::tell_arithmetic(io, a); });
  keys.emplace_back("paths");
  keys.emplace_back("backward");
  return keys;
}

}  // namespace attest
