#include "core/kernel/manifest_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/kernel/limits.h"
#include "core/kernel/manifest.h"
#include "core/problem/fields.h"
#include "core/support/errors.h"
#include "core/support/json_reader.h"
#include "core/support/names.h"
#include "core/support/source_place.h"
#include "core/support/visible.h"

namespace attest {

namespace {

using nlohmann::json, nlohmann::ordered_json;
using Names = std::span<const std::string_view>;

/// As long as an axis may be (case.h): no sum has more terms.
constexpr WholeNumbers extents{1, (std::int64_t{1} << 31U) - 1};
/// Of largest extents, which may be stated where there is none: they allocate nothing.
constexpr WholeNumbers largest_limits{1, most_whole_number};
/// Of numbers that extents must be multiples of. Kernels ask for 8 to 256; the least problem grows with them.
constexpr WholeNumbers multiples{1, 65536};
/// An approximate division takes a few; the bound grows with each.
constexpr WholeNumbers roundings{1, 64};

constexpr std::array<std::string_view, 2> scales{"any", "inv-sqrt-dk"}, value_dims{"any", "head_dim"},
    model_dims{"any", "heads*head_dim"}, merges{"sequential", "pairwise"}, masks{"additive", "bool"},
    table_tails{"valid", "any"}, lse_of_sinks{"with", "without"}, masks_of_dropout{"given", "own"},
    blocks_of_descale{"listed", "any"}, lse_of_slopes{"definition", "column"}, uses_of_backward{"out", "lse"};
constexpr std::array<std::string_view, 3> tensors_of_descale{"q", "k", "v"},
    operations{"attention", "multihead", "attention_backward"};
/// All but bool, the last one.
constexpr Names dtypes = std::span(Words<DType>::names).first<6>();

template <Worded Enum>
constexpr Names words_of = Words<Enum>::names;
template <>
constexpr Names words_of<DType> = dtypes;

// What a manifest holds is told once, in the order in which it is written, to a Writer, a Reader or Keys:
//
//   io("key", value)                   of its type; whole numbers with their range. Read, any key may be absent
//   io.if_stated(is, "key", value)     written only where it is, behind what is always written
//   io.positive(is, "key", value, most, why)
//   io.word("key", words, flag)        the second of two words where the flag is true, or as the last argument says
//   io.flags("key", words, one, ...)   the words of the flags that are set
//   io.object("key", tell)             an object of which `tell` tells an io the members
//   io.by("key", record, write, read)  written by a function of the record where it gives no null, read by another
//   io.require(holds, "key", rule)     of what was read; io.states("key"): it was there

ordered_json json_of(const auto& value) {
  using Value = std::remove_cvref_t<decltype(value)>;
  if constexpr (Worded<Value>) {
    return name_of(value);
  } else if constexpr (requires { value.has_value(); }) {
    return value ? json_of(*value) : ordered_json(nullptr);
  } else if constexpr (requires { requires Worded<typename Value::value_type>; }) {
    ordered_json array = ordered_json::array();
    for (const auto one : value) array.push_back(name_of(one));
    return array;
  } else {
    return value;
  }
}

class Writer {
 public:
  void operator()(std::string_view key, const auto& value, const WholeNumbers& /*range*/ = {}) {
    always_[std::string(key)] = json_of(value);
  }
  void if_stated(bool is, std::string_view key, const auto& value, const WholeNumbers& /*range*/ = {}) {
    if (is) behind_[std::string(key)] = json_of(value);
  }
  void positive(bool is, std::string_view key, double value, double /*most*/, std::string_view /*why*/) {
    if_stated(is, key, value);
  }
  void word(std::string_view key, Names words, bool flag, bool second = true) {
    (*this)(key, words[flag == second ? 1 : 0]);
  }
  void flags(std::string_view key, Names words, std::same_as<bool> auto... flags) {
    ordered_json& set = always_[std::string(key)] = ordered_json::array();
    std::size_t at = 0;
    for (const bool flag : {flags...}) {
      if (flag) set.push_back(words[at]);
      ++at;
    }
  }
  void object(std::string_view key, auto tell) {
    Writer io;
    tell(io);
    (*this)(key, io.json());
  }
  void by(std::string_view key, const auto& record, auto write, auto /*read*/) {
    if (const ordered_json value = write(record); !value.is_null()) (*this)(key, value);
  }
  [[nodiscard]] static bool states(std::string_view /*key*/) { return true; }
  void require(bool /*holds*/, std::string_view /*key*/, std::string_view /*rule*/) {}

  [[nodiscard]] ordered_json json() const {
    ordered_json all = always_;
    all.update(behind_);
    return all;
  }

 private:
  ordered_json always_ = ordered_json::object(), behind_ = ordered_json::object();
};

class Keys {
 public:
  void operator()(std::string_view key, const auto&... /*rest*/) { keys.push_back(key); }
  void if_stated(bool /*is*/, std::string_view key, const auto&... /*rest*/) { keys.push_back(key); }
  void positive(bool /*is*/, std::string_view key, const auto&... /*rest*/) { keys.push_back(key); }
  void word(std::string_view key, const auto&... /*rest*/) { keys.push_back(key); }
  void flags(std::string_view key, const auto&... /*rest*/) { keys.push_back(key); }
  void object(std::string_view key, const auto&... /*rest*/) { keys.push_back(key); }
  void by(std::string_view key, const auto&... /*rest*/) { keys.push_back(key); }
  [[nodiscard]] static bool states(std::string_view /*key*/) { return true; }
  void require(bool /*holds*/, std::string_view /*key*/, std::string_view /*rule*/) {}
  std::vector<std::string_view> keys{};
};
std::vector<std::string_view> keys_told_by(auto tell) {
  Keys io;
  tell(io);
  return io.keys;
}

class Reader {
 public:
  explicit Reader(const JsonObject& object) : object_(object) {}

  void operator()(std::string_view key, bool& value) { object_.read(key, value); }
  void operator()(std::string_view key, std::string& value) { object_.read(key, value); }
  void operator()(std::string_view key, auto& value, const WholeNumbers& range) { object_.read(key, range, value); }
  template <Worded Enum>
  void operator()(std::string_view key, Enum& value) {
    if (const auto position = object_.word(key, words_of<Enum>)) value = static_cast<Enum>(*position);
  }
  /// null says that the thing is not done, which a word cannot.
  template <Worded Enum>
  void operator()(std::string_view key, std::optional<Enum>& value) {
    const json* found = object_.find(key);
    if (found == nullptr) return;
    value.reset();
    if (!found->is_null()) (*this)(key, value.emplace());
  }
  template <Worded Enum>
  void operator()(std::string_view key, std::vector<Enum>& values) {
    const auto positions = object_.words(key, words_of<Enum>);
    if (!positions) return;
    values.clear();
    for (const std::size_t position : *positions) values.push_back(static_cast<Enum>(position));
  }
  void if_stated(bool /*is*/, std::string_view key, auto& value, const auto&... range) {
    (*this)(key, value, range...);
  }
  void positive(bool /*is*/, std::string_view key, double& value, double most, std::string_view why) {
    object_.read_positive(key, most, why, value);
  }
  void word(std::string_view key, Names words, bool& flag, bool second = true) {
    if (const auto position = object_.word(key, words)) flag = (*position == 1) == second;
  }
  void flags(std::string_view key, Names words, std::same_as<bool> auto&... flags) {
    const auto positions = object_.words(key, words);
    if (!positions) return;
    std::size_t at = 0;
    ((flags = std::ranges::count(*positions, at++) > 0), ...);
  }
  void object(std::string_view key, auto tell) {
    const json* found = object_.find(key);
    if (found == nullptr) return;
    const JsonObject inner(*found, object_.path(key), keys_told_by(tell));
    Reader io(inner);
    tell(io);
  }
  void by(std::string_view key, auto& record, auto /*write*/, auto read) {
    if (states(key)) read(object_, key, record);
  }
  [[nodiscard]] bool states(std::string_view key) const { return object_.find(key) != nullptr; }
  void require(bool holds, std::string_view key, std::string_view rule) {
    if (!holds) object_.refuse(key, rule);
  }

 private:
  const JsonObject& object_;
};

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

/// An object by dtypes, of which the manifest lists each.
JsonObject by_dtype(const JsonObject& object, std::string_view key, const Manifest& m) {
  const json& value = *object.find(key);
  JsonObject inner(value, object.path(key), dtypes);
  for (const auto& item : value.items()) {
    if (std::ranges::count(m.dtypes, *named<DType>(item.key())) > 0) continue;
    throw UsageError(fmt::format("{} is stated; \"dtypes\" does not list it", inner.path(item.key())));
  }
  return inner;
}

ordered_json json_of(const Arithmetic& a) {
  Writer io;
  tell_arithmetic(io, a);
  return io.json();
}

/// null where nothing is stated.
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

/// One object for all dtypes, or one per dtype.
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

void tell_arithmetics(auto& io, std::string_view key, auto& m, auto member) {
  io.by(
      key, m, [member](const Manifest& of) { return arithmetics_json(of.*member); },
      [member](const JsonObject& object, std::string_view name, Manifest& of) {
        read_arithmetics(object, name, of, of.*member);
      });
}

/// "f16" where k and v have it, and ["f16", "bf16"] where each has its own.
ordered_json kv_dtypes_json(const Manifest& m) {
  ordered_json by_name;
  for (const auto& [q, pairs] : m.kv_dtypes) {
    for (const KvDtypes& pair : pairs) {
      ordered_json written = name_of(pair.k);
      if (pair.v != pair.k) written = ordered_json::array({name_of(pair.k), name_of(pair.v)});
      by_name[std::string(name_of(q))].push_back(std::move(written));
    }
  }
  return by_name;
}

/// An array for all dtypes, or an object with one per dtype.
void read_kv_dtypes(const JsonObject& object, std::string_view key, Manifest& m) {
  constexpr std::string_view rule =
      R"(it must list dtypes of k and v, as ["f16", ["f16", "bf16"]], or such a list for each dtype of q)";
  const auto named_in = [](const json& name) {
    const auto found = name.is_string() ? named<DType>(name.get<std::string>()) : std::nullopt;
    return found && !is_of_keys(*found) ? std::nullopt : found;
  };
  const auto add = [&](const JsonObject& of, std::string_view name, DType q) {
    const json& list = *of.find(name);
    if (!list.is_array() || list.empty()) of.refuse(name, rule);
    std::vector<KvDtypes>& pairs = m.kv_dtypes[q];
    for (const json& one : list) {
      const bool pair = one.is_array() && one.size() == 2;
      const auto k = named_in(pair ? one[0] : one), v = named_in(pair ? one[1] : one);
      if (!k || !v) of.refuse(name, rule);
      if (std::ranges::count(pairs, KvDtypes{*k, *v}) == 0) pairs.push_back({*k, *v});
    }
  };
  if (!object.find(key)->is_object()) {
    for (const DType q : m.dtypes) add(object, key, q);
    return;
  }
  const JsonObject inputs = by_dtype(object, key, m);
  for (const auto& item : object.find(key)->items()) add(inputs, item.key(), *named<DType>(item.key()));
}

ordered_json out_dtypes_json(const Manifest& m) {
  Writer io;
  for (const auto& [input, outputs] : m.out_dtypes) io(name_of(input), outputs);
  return io.json();
}

/// An array for all dtypes, or an object with one per dtype. The input's own dtype goes without saying.
void read_out_dtypes(const JsonObject& object, std::string_view key, Manifest& m) {
  const auto add = [&](const JsonObject& of, std::string_view name, DType input) {
    std::vector<DType> outputs;
    Reader io(of);
    io(name, outputs);
    std::erase(outputs, input);
    if (!outputs.empty()) m.out_dtypes[input] = std::move(outputs);
  };
  const json& found = *object.find(key);
  if (!found.is_object()) {
    for (const DType input : m.dtypes) add(object, key, input);
    return;
  }
  const JsonObject inputs = by_dtype(object, key, m);
  for (const auto& item : found.items()) add(inputs, item.key(), *named<DType>(item.key()));
}

/// No bound is known of inputs that are rounded on their way in.
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

/// What is said of a cap of scores goes with one.
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

void tell_widths(auto& io, auto& m) {
  io("head_dim_multiple", m.head_dim_multiple, multiples);
  io.if_stated(m.max_head_dim.has_value(), "max_head_dim", m.max_head_dim, largest_limits);
  io.if_stated(!m.head_dims.empty(), "head_dims", m.head_dims, extents);
  io.word("value_dim", value_dims, m.value_dim_equals_head_dim);
  io.if_stated(!m.value_dims.empty(), "value_dims", m.value_dims, extents);
  io.by(
      "model_dim", m, [](const auto& of) { return of.model_dim_is_heads ? ordered_json(model_dims[1]) : nullptr; },
      [](const JsonObject& object, std::string_view key, auto& of) {
        Reader(object).word(key, model_dims, of.model_dim_is_heads);
      });
  io.require(!m.max_head_dim || *m.max_head_dim >= m.head_dim_multiple, "max_head_dim",
             fmt::format("no multiple of {} (head_dim_multiple) is so small", m.head_dim_multiple));
  io.require(m.head_dims.empty() || (m.head_dim_multiple == 1 && !m.max_head_dim), "head_dims",
             "it lists all there are; leave \"head_dim_multiple\" and \"max_head_dim\" out");
  io.require(m.value_dims.empty() || !m.value_dim_equals_head_dim, "value_dims",
             "\"value_dim\" ties dv to dk; state one of the two");
  io.require(!m.model_dim_is_heads || m.multihead, "model_dim", "only \"operations\" with \"multihead\" have it");
}

void tell_lengths(auto& io, auto& m) {
  constexpr WholeNumbers from_none{0, extents.most};
  io.if_stated(m.max_queries.has_value(), "max_queries", m.max_queries, largest_limits);
  io.if_stated(m.min_queries > 0, "min_queries", m.min_queries, from_none);
  io.if_stated(m.queries_multiple > 1, "queries_multiple", m.queries_multiple, multiples);
  io.if_stated(m.max_keys.has_value(), "max_keys", m.max_keys, largest_limits);
  io.if_stated(m.min_keys > 0, "min_keys", m.min_keys, from_none);
  io.if_stated(m.keys_multiple > 1, "keys_multiple", m.keys_multiple, multiples);
  const auto require = [&](std::string_view max, std::string_view of, const AllowedExtents& allowed) {
    io.require(allowed.from(1).has_value(), max,
               fmt::format("no multiple of {} ({}_multiple) from {} (min_{}) on is so small", allowed.multiple, of,
                           allowed.least, of));
  };
  require("max_queries", "queries", allowed_queries(m));
  require("max_keys", "keys", allowed_keys(m));
  io.if_stated(m.same_lengths, "same_lengths", m.same_lengths);
  io.require(!m.same_lengths || allowed_tokens(m).from(1).has_value(), "same_lengths",
             "no length is within the limits of queries and within those of keys");
}

void tell_heads(auto& io, auto& m) {
  io.if_stated(m.max_heads.has_value(), "max_heads", m.max_heads, largest_limits);
  io("heads_multiple", m.heads_multiple, multiples);
  io.if_stated(!m.group_sizes.empty(), "group_sizes", m.group_sizes, extents);
  io.require(!m.max_heads || *m.max_heads >= m.heads_multiple, "max_heads",
             fmt::format("no multiple of {} (heads_multiple) is so small", m.heads_multiple));
  const bool grouped = !m.group_sizes.empty() && m.group_sizes.back() > 1;
  io.require(!grouped || m.grouped_query, "group_sizes", "\"grouped_query\" is false, and a group has 1 head");
  const std::int64_t least = m.group_sizes.empty() ? 1 : std::lcm(m.group_sizes.front(), m.heads_multiple);
  io.require(least <= m.max_heads.value_or(least), "group_sizes",
             fmt::format("\"max_heads\" is {}, and the smallest group takes {}", m.max_heads.value_or(0), least));
}

void tell_limits(auto& io, auto& m) {
  tell_widths(io, m);
  tell_lengths(io, m);
  tell_heads(io, m);
  io("self_attention_only", m.self_attention_only);
  io.if_stated(m.alignment > 0, "alignment", m.alignment, largest_limits);
  io.if_stated(!m.zero_strides, "zero_strides", m.zero_strides);
  io.if_stated(!m.far_strides, "far_strides", m.far_strides);
  constexpr std::int64_t page = 4096;
  io.require(m.alignment <= page && (m.alignment & (m.alignment - 1)) == 0, "alignment",
             "it must be a power of two, in bytes, of at most 4096");
  io.require(!m.self_attention_only || m.multihead, "self_attention_only",
             "only \"operations\" with \"multihead\" have it");
  io.require(m.zero_strides || m.strides, "zero_strides", "\"strides\" is false, and none are sent");
  io.require(m.far_strides || m.strides, "far_strides", "\"strides\" is false, and none are sent");
}

void tell_tiles(auto& io, auto& tiles) {
  io.if_stated(!tiles.queries.empty(), "queries", tiles.queries, extents);
  io.if_stated(!tiles.keys.empty(), "keys", tiles.keys, extents);
  io.if_stated(!tiles.splits.empty(), "splits", tiles.splits, extents);
}

ordered_json tiles_json(const Manifest& m) {
  Writer io;
  tell_tiles(io, m.tiles);
  return m.tiles == Tiles() ? ordered_json(nullptr) : io.json();
}

void read_tiles(const JsonObject& object, std::string_view key, Manifest& m) {
  const JsonObject inner(*object.find(key), object.path(key), keys_told_by([&](auto& io) { tell_tiles(io, m.tiles); }));
  Reader io(inner);
  tell_tiles(io, m.tiles);
}

ordered_json excludes_json(const Manifest& m) {
  ordered_json lists = ordered_json::array();
  for (const std::vector<Feature>& together : m.excluded) lists.push_back(json_of(together));
  return lists.empty() ? ordered_json(nullptr) : lists;
}

void read_excludes(const JsonObject& object, std::string_view key, Manifest& m) {
  constexpr std::string_view rule = "it must be an array of lists of words, as [[\"mask\", \"causal\"]]";
  const json& lists = *object.find(key);
  if (!lists.is_array()) object.refuse(key, rule);
  for (const json& list : lists) {
    if (!list.is_array()) object.refuse(key, rule);
    const json one = json::object({{std::string(key), list}});
    const std::vector<std::string_view> known{key};
    std::vector<Feature> together;
    const JsonObject inner(one, "", known);
    Reader io(inner);
    io(key, together);
    if (together.empty()) object.refuse(key, rule);
    m.excluded.push_back(std::move(together));
  }
}

/// Whether the other keys let a problem have it.
bool offers(const Manifest& m, Feature feature) {
  const auto has_form = [&](Causal form) { return std::ranges::count(m.causal, form) > 0; };
  switch (feature) {
    case Feature::mask:
      return m.additive_masks || m.bool_masks;
    case Feature::additive_mask:
      return m.additive_masks;
    case Feature::bool_mask:
      return m.bool_masks;
    case Feature::causal:
      return has_form(Causal::top_left) || has_form(Causal::bottom_right);
    case Feature::top_left:
      return has_form(Causal::top_left);
    case Feature::bottom_right:
      return has_form(Causal::bottom_right);
    case Feature::grouped_query:
      return m.grouped_query && (m.group_sizes.empty() || m.group_sizes.back() > 1);
    case Feature::unequal_lengths:
    case Feature::fewer_keys:
      return !m.same_lengths;
    case Feature::output_projection:
    case Feature::bias_kv:
      return m.multihead;
    case Feature::window:
    case Feature::lengths:
    case Feature::packed:
    case Feature::left_pad:
    case Feature::paged:
    case Feature::append:
    case Feature::cache_index:
    case Feature::sink:
    case Feature::softcap:
    case Feature::dropout:
    case Feature::alibi:
    case Feature::chunk:
    case Feature::descale:
      return m.variants.contains(name_of(feature));
    case Feature::lse:
      return m.lse;
  }
  return false;
}

void tell_features(auto& io, auto& m) {
  io.if_stated(!m.required.empty(), "requires", m.required);
  io.by("excludes", m, excludes_json, read_excludes);
  const auto requires_it = [&](Feature feature) { return std::ranges::count(m.required, feature) > 0; };
  for (const Feature feature : m.required) {
    io.require(offers(m, feature), "requires",
               fmt::format("no other key of the manifest offers \"{}\"", name_of(feature)));
  }
  io.require(!(requires_it(Feature::top_left) && requires_it(Feature::bottom_right)) &&
                 !(requires_it(Feature::additive_mask) && requires_it(Feature::bool_mask)),
             "requires", "no problem has two causal forms or two masks");
  for (const std::vector<Feature>& together : m.excluded)
    io.require(!std::ranges::all_of(together, requires_it), "excludes", "\"requires\" lists all of one list");
  // Of the call, and no problem is without it: what forbids it and what requires it cannot both be kept.
  const auto lists_lse = [](const std::vector<Feature>& words) { return std::ranges::count(words, Feature::lse) > 0; };
  for (const auto& [name, terms] : m.variants) {
    io.require(!lists_lse(m.required) || !lists_lse(terms.excluded), "requires",
               fmt::format("\"variants\".\"{}\".\"excludes\" lists \"lse\"", name));
    const auto comes_with_it = [&](Feature feature) {
      return name_of(feature) == name || requires_it(feature) || std::ranges::count(terms.required, feature) > 0;
    };
    for (const std::vector<Feature>& together : m.excluded)
      io.require(!lists_lse(together) || !std::ranges::all_of(together, comes_with_it), "excludes",
                 fmt::format("\"variants\".\"{}\" requires all of one list", name));
  }
}

void tell_variant(auto& io, std::string_view name, auto& terms) {
  if (name == window_variant.name) {
    io("left", terms.left);
    io("right", terms.right);
    io.require(terms.left || terms.right, "right", "a window has a left end, a right end or both");
  }
  if (is_positional(name)) {
    io("alignment", terms.alignment);
    io.require(!terms.alignment.empty() && std::ranges::count(terms.alignment, Causal::none) == 0, "alignment",
               "it must list \"top-left\", \"bottom-right\" or both");
  }
  if (name == alibi_variant.name) {
    io("form", terms.form);
    io.if_stated(terms.per_batch, "per_batch", terms.per_batch);
  }
  if (name == descale_variant.name) {
    io.flags("tensors", tensors_of_descale, terms.of_q, terms.of_k, terms.of_v);
    io.require(terms.of_q || terms.of_k || terms.of_v, "tensors", R"(it must list "q", "k" or "v")");
    io("per_head", terms.per_head);
    io.if_stated(terms.per_batch, "per_batch", terms.per_batch);
    io.if_stated(!terms.q_blocks.empty(), "q_blocks", terms.q_blocks, extents);
    io.if_stated(!terms.kv_blocks.empty(), "kv_blocks", terms.kv_blocks, extents);
    io.word("blocks", blocks_of_descale, terms.any_blocks);
    io.require(terms.of_q || terms.q_blocks.empty(), "q_blocks", R"("tensors" does not list "q")");
    io.require(terms.of_k || terms.of_v || terms.kv_blocks.empty(), "kv_blocks",
               R"("tensors" lists neither "k" nor "v")");
    io.if_stated(terms.dequantised != DescalePlace::unstated, "applied", terms.dequantised);
  }
  if (name == lengths_variant.name) {
    io("queries", terms.queries);
    io("keys", terms.keys);
    io.require(terms.queries || terms.keys, "keys", "there are lengths of queries, of keys or of both");
    io.if_stated(terms.padding != Padding::undeclared, "padding", terms.padding);
  }
  if (name == packed_variant.name) io.if_stated(terms.padding != Padding::undeclared, "slack", terms.padding);
  if (name == paged_variant.name) {
    io.if_stated(!terms.page_sizes.empty(), "page_sizes", terms.page_sizes, extents);
    io.word("table_tail", table_tails, terms.any_table_tail);
    io.if_stated(terms.two_tables, "two_tables", terms.two_tables);
  }
  if (name == sink_variant.name) {
    io("dtypes", terms.dtypes);
    io.require(!terms.dtypes.empty(), "dtypes", "it must list at least one");
    io.if_stated(!terms.in_max, "in_max", terms.in_max);
    io.word("lse", lse_of_sinks, terms.lse_has_sink, /*second=*/false);
  }
  if (name == dropout_variant.name) {
    io.flags("mask", masks_of_dropout, terms.given, terms.own);
    io.require(terms.given || terms.own, "mask", R"(it must list "given", "own" or both)");
    io.if_stated(terms.keep_levels > 0, "keep_levels", terms.keep_levels, extents);
    io.require(terms.own || terms.keep_levels == 0, "keep_levels", R"("mask" does not list "own")");
    io.if_stated(terms.applied != DropoutPlace::unstated, "applied", terms.applied);
  }
  if (name == append_variant.name)
    io.if_stated(terms.max_tokens.has_value(), "max_tokens", terms.max_tokens, largest_limits);
  io.if_stated(!terms.required.empty(), "requires", terms.required);
  io.if_stated(!terms.excluded.empty(), "excludes", terms.excluded);
}

ordered_json variants_json(const Manifest& m) {
  if (m.variants.empty()) return nullptr;
  ordered_json all = ordered_json::object();
  for (const auto& [name, terms] : m.variants) {
    Writer io;
    tell_variant(io, name, terms);
    all[name] = io.json();
  }
  return all;
}

/// After whatever says what else a problem may have.
void read_variants(const JsonObject& object, std::string_view key, Manifest& m) {
  std::vector<std::string_view> known;
  for (const Variant& variant : variants()) known.push_back(variant.name);
  const JsonObject all(*object.find(key), object.path(key), known);
  for (const std::string_view name : known) {
    const json* const found = all.find(name);
    if (found == nullptr) continue;
    VariantTerms& terms = m.variants[std::string(name)];
    std::vector<Causal> forms = m.causal;
    std::erase(forms, Causal::none);
    if (!forms.empty()) terms.alignment = std::move(forms);
    const JsonObject inner(*found, all.path(name), keys_told_by([&](auto& io) { tell_variant(io, name, terms); }));
    Reader io(inner);
    tell_variant(io, name, terms);
    for (const Feature feature : terms.required) {
      if (!offers(m, feature))
        inner.refuse("requires", fmt::format("no other key of the manifest offers \"{}\"", name_of(feature)));
      if (std::ranges::count(terms.excluded, feature) > 0)
        inner.refuse("excludes", fmt::format("\"requires\" lists \"{}\"", name_of(feature)));
    }
    if (terms.form != SlopeForm::distance && !offers(m, Feature::causal))
      inner.refuse("form", "the others are those of a causal form, and \"causal\" lists none");
  }
  const auto lengths = m.variants.find(lengths_variant.name);
  for (const Variant& cache : {paged_variant, append_variant})
    if (m.variants.contains(cache.name) && (lengths == m.variants.end() || !lengths->second.keys))
      object.refuse(key,
                    fmt::format("\"{}\" goes with \"lengths\" of keys, which say how many of a cache's keys there are",
                                cache.name));
}

void tell_lse_convention(auto& io, auto& convention) {
  io.word("alibi", lse_of_slopes, convention.of_columns);
  io("empty", convention.empty);
}

ordered_json lse_convention_json(const Manifest& m) {
  if (m.lse_convention == LseConvention()) return nullptr;
  Writer io;
  tell_lse_convention(io, m.lse_convention);
  return io.json();
}

/// After the variants.
void read_lse_convention(const JsonObject& object, std::string_view key, Manifest& m) {
  if (!m.lse) object.refuse(key, "it says in which form log-sum-exps come, and \"lse\" is false");
  const JsonObject inner(*object.find(key), object.path(key),
                         keys_told_by([&](auto& io) { tell_lse_convention(io, m.lse_convention); }));
  Reader io(inner);
  tell_lse_convention(io, m.lse_convention);
  if (m.lse_convention.of_columns && !m.variants.contains(alibi_variant.name))
    inner.refuse("alibi", "\"variants\" lists no \"alibi\"");
}

void tell_backward(auto& io, auto& terms) {
  io.flags("gradients", Words<Gradient>::names, terms.dq, terms.dk, terms.dv, terms.dmask, terms.dsink);
  io.require(terms.dq || terms.dk || terms.dv, "gradients", R"(it must list "dq", "dk" or "dv")");
  io.flags("uses", uses_of_backward, terms.uses_out, terms.uses_lse);
  io.if_stated(terms.d_lse, "d_lse", terms.d_lse);
  io.if_stated(terms.own_dropout, "own_dropout", terms.own_dropout);
  io.if_stated(terms.masked_row != MaskedGradient::undeclared, "masked_row", terms.masked_row);
  io("weights", terms.weights);
  io.if_stated(terms.delta != DeltaFrom::unstated, "delta", terms.delta);
  io("claims", terms.claims);
  io.if_stated(!terms.excluded.empty(), "excludes", terms.excluded);
  io.require(std::ranges::count(terms.excluded, Feature::lse) == 0, "excludes",
             R"("lse" is what every backward pass is asked beside)");
  io.require(terms.weights != WeightsFrom::lse || terms.uses_lse, "uses",
             R"("weights": "lse" are made of a log-sum-exp; list "lse")");
  io.require(terms.delta != DeltaFrom::out || terms.uses_out, "uses",
             R"("delta": "out" is made of an output; list "out")");
}

ordered_json backward_json(const Manifest& m) {
  if (!m.backward) return nullptr;
  Writer io;
  tell_backward(io, m.backward_terms);
  return io.json();
}

void read_backward(const JsonObject& object, std::string_view key, Manifest& m) {
  if (!m.backward)
    object.refuse(key, R"(it says what a backward pass does, and "operations" do not list "attention_backward")");
  const JsonObject inner(*object.find(key), object.path(key),
                         keys_told_by([&](auto& io) { tell_backward(io, m.backward_terms); }));
  Reader io(inner);
  tell_backward(io, m.backward_terms);
  if (m.backward_terms.dmask && !m.additive_masks)
    inner.refuse("gradients", R"("dmask" is a gradient by an additive mask, and "masks" do not list "additive")");
  if (m.backward_terms.dsink && !m.variants.contains(sink_variant.name))
    inner.refuse("gradients", R"("dsink" is a gradient by sinks, and "variants" list no "sink")");
  const auto dropout = m.variants.find(dropout_variant.name);
  if (m.backward_terms.own_dropout && (dropout == m.variants.end() || !dropout->second.own))
    inner.refuse("own_dropout", R"(the "mask" of "dropout" in "variants" does not list "own")");
}

void tell_manifest(auto& io, auto& m) {
  constexpr std::string_view one = "it must list at least one";
  io("name", m.name);
  io.require(!m.name.empty(), "name", "it must not be empty");
  io("version", m.version);
  io.if_stated(!m.source.empty(), "source", m.source);
  io.require(m.source.empty() || source_place(m.source), "source", source_rule);
  io.by("abi", m, [](const auto&) { return ATTEST_ABI; }, [](const auto&...) {});
  io.flags("operations", operations, m.attention, m.multihead, m.backward);
  io.require(m.attention || m.multihead, "operations", one);
  io("dtypes", m.dtypes);
  io.require(!m.dtypes.empty(), "dtypes", one);
  io.by("out_dtypes", m, out_dtypes_json, read_out_dtypes);
  tell_arithmetics(io, "arithmetic", m, &Manifest::arithmetic);
  io.by("kv_dtypes", m, kv_dtypes_json, read_kv_dtypes);
  io.require(m.attention || m.kv_dtypes.empty(), "kv_dtypes", "only \"operations\" with \"attention\" have them");
  tell_arithmetics(io, "promises", m, &Manifest::promises);
  io("claims", m.claims);
  io("fully_masked_row", m.fully_masked_row);
  io.word("scale", scales, m.any_scale, /*second=*/false);
  io.flags("masks", masks, m.additive_masks, m.bool_masks);
  io("mask_dtypes", m.mask_dtypes);
  io.require(m.additive_masks || m.mask_dtypes.empty(), "mask_dtypes", "\"masks\" does not list \"additive\"");
  io("mask_conventions", m.mask_conventions);
  io.require(!m.additive_masks || !m.mask_conventions.empty(), "mask_conventions",
             "additive masks need one; without them state \"masks\": [\"bool\"] or []");
  io("causal", m.causal);
  io("grouped_query", m.grouped_query);
  io("strides", m.strides);
  io("lse", m.lse);
  io("thread_safe", m.thread_safe);
  io.if_stated(m.shared_memory, "shared_memory", m.shared_memory);
  io.object("limits", [&](auto& limits) { tell_limits(limits, m); });
  io.by("variants", m, variants_json, read_variants);
  io.require(m.attention || m.variants.empty(), "variants", "only \"operations\" with \"attention\" have them");
  io.by("lse_convention", m, lse_convention_json, read_lse_convention);
  io.by("backward", m, backward_json, read_backward);
  io.require(!m.backward || m.attention, "operations", "a backward pass is that of \"attention\"; list both");
  io.require(!m.backward || m.lse, "operations",
             "gradients are judged beside the log-sum-exp that the forward pass returned; state \"lse\": true");
  tell_features(io, m);
  io.by("tiles", m, tiles_json, read_tiles);
}

Manifest read_manifest(std::string_view text) {
  const json value = parse_strict_json(text);
  // Before all else: another version's manifest may have keys that this one lacks, which are not what is wrong with it.
  if (value.is_object() && value.contains("abi") && value["abi"] != ATTEST_ABI) {
    const json abi = json::object({{"abi", value["abi"]}});
    JsonObject(abi, "", manifest_keys())
        .refuse("abi",
                fmt::format("this version speaks {}; compile the kernel against its <attest/kernel.h>", ATTEST_ABI));
  }
  const JsonObject object(value, "", manifest_keys());
  if (object.find("name") == nullptr) object.refuse("name", "a manifest states it, as \"my kernel\"");
  if (object.find("dtypes") == nullptr) object.refuse("dtypes", "a manifest states them, as [\"f32\"]");
  Manifest m;
  // Unstated, a call at a time is all that kernel-interface.md promises a kernel.
  m.thread_safe = false;
  Reader io(object);
  tell_manifest(io, m);
  std::erase(m.causal, Causal::none);
  for (const DType dtype : m.dtypes) m.arithmetic.usual.try_emplace(dtype, universal_arithmetic(dtype, dtype));
  // Of those that the manifest leaves unstated, too.
  state_terms_in_arithmetic(m);
  refuse_rounded_inputs(object, m);
  refuse_caps_unsaid(object, m);
  return m;
}

}  // namespace

std::vector<std::string_view> manifest_keys() {
  Manifest m;
  return keys_told_by([&](auto& io) { tell_manifest(io, m); });
}
std::vector<std::string_view> limit_keys() {
  Manifest m;
  return keys_told_by([&](auto& io) { tell_limits(io, m); });
}
std::vector<std::string_view> arithmetic_keys() {
  Arithmetic a;
  std::vector<std::string_view> keys = keys_told_by([&](auto& io) { tell_arithmetic(io, a); });
  keys.emplace_back("paths");
  keys.emplace_back("backward");
  return keys;
}

Manifest parse_manifest(std::string_view json_text, std::string_view source) {
  try {
    return read_manifest(json_text);
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{}: {}", source, error.what()));
  }
}

std::string to_json(const Manifest& m) {
  Writer io;
  tell_manifest(io, m);
  return visible_json(io.json().dump(2, ' ', false, json::error_handler_t::replace));
}

}  // namespace attest
