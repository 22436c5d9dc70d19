#include "reports/command_line/option_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <ranges>

#include "core/support/errors.h"
#include "core/support/names.h"

namespace attest {
namespace {

using Text = const std::string&;

template <class Integer>
Integer whole(std::string_view option, Text text, Integer least) {
  Integer value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (whole && value >= least) return value;
  if (whole) throw UsageError(fmt::format("{} is {}; it must be at least {}", option, text, least));
  if (error == std::errc::result_out_of_range) {
    throw UsageError(
        fmt::format("{} is {}; it must be at most {}", option, in_quotes(text), std::numeric_limits<Integer>::max()));
  }
  throw UsageError(fmt::format("{} is {}; it must be a whole number of at least {}", option, in_quotes(text), least));
}

std::chrono::milliseconds time_of(std::string_view option, Text text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  const double factor = unit == "ms"                  ? 1
                        : unit.empty() || unit == "s" ? 1e3
                        : unit == "m"                 ? 60e3
                        : unit == "h"                 ? 3600e3
                                                      : 0;
  // A year: more would overflow a clock, and nobody means it.
  const double limit = 365.0 * 24 * 3600e3;
  if (error == std::errc() && factor > 0 && value * factor >= 1 && value * factor <= limit) {
    return std::chrono::milliseconds(static_cast<std::int64_t>(value * factor));
  }
  throw UsageError(fmt::format(
      "{} is {}; it must be a time from 1ms to a year such as 500ms, 90s, 10m or 2h; a number alone is seconds", option,
      in_quotes(text)));
}

std::uint64_t bytes_of(std::string_view option, Text text) {
  if (text == "none") return 0;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  const double factor = unit.empty() || unit == "B" ? 1
                        : unit == "KiB"             ? 0x1p10
                        : unit == "MiB"             ? 0x1p20
                        : unit == "GiB"             ? 0x1p30
                        : unit == "TiB"             ? 0x1p40
                        : unit == "kB"              ? 1e3
                        : unit == "MB"              ? 1e6
                        : unit == "GB"              ? 1e9
                        : unit == "TB"              ? 1e12
                                                    : 0;
  // With less no kernel is loaded; more than the other end no machine has.
  if (error == std::errc() && factor > 0 && value * factor >= 0x1p24 && value * factor <= 0x1p50) {
    return static_cast<std::uint64_t>(value * factor);
  }
  throw UsageError(fmt::format("{} is {}; it must be a size from 16MiB to 1024TiB such as 512MiB or 4GiB, or none",
                               option, in_quotes(text)));
}

/// What PyTorch, NumPy and JAX call the dtypes, without a module in front; empty for any other word.
std::string_view dtype_of_frameworks(std::string_view word) {
  struct Name {
    std::string_view theirs, ours;
  };
  static constexpr Name names[] = {{"float64", "f64"},
                                   {"double", "f64"},
                                   {"fp64", "f64"},
                                   {"float", "f32"},
                                   {"float32", "f32"},
                                   {"single", "f32"},
                                   {"fp32", "f32"},
                                   {"f4", "f32"},
                                   {"tf32", "f32"},
                                   {"float16", "f16"},
                                   {"half", "f16"},
                                   {"fp16", "f16"},
                                   {"f2", "f16"},
                                   {"bfloat16", "bf16"},
                                   {"bfloat", "bf16"},
                                   {"brain", "bf16"},
                                   {"float8_e4m3fn", "f8_e4m3"},
                                   {"float8_e4m3", "f8_e4m3"},
                                   {"fp8_e4m3", "f8_e4m3"},
                                   {"e4m3", "f8_e4m3"},
                                   {"float8_e5m2", "f8_e5m2"},
                                   {"fp8_e5m2", "f8_e5m2"},
                                   {"e5m2", "f8_e5m2"}};
  const std::string_view last = word.substr(word.rfind('.') + 1);
  const auto found = std::ranges::find_if(names, [&](const Name& name) {
    return std::ranges::equal(name.theirs, last, {}, {},
                              [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; });
  });
  return found == std::ranges::end(names) ? std::string_view() : found->ours;
}

std::vector<DType> dtypes_of(std::string_view, Text text) {
  std::vector<DType> dtypes;
  static constexpr std::array known{DType::f64, DType::f32, DType::f16, DType::bf16, DType::f8_e4m3, DType::f8_e5m2};
  const std::string listed = text.empty() ? "," : text;  // split makes no word of an empty text; this makes empty ones
  for (const auto part : std::views::split(listed, ',')) {
    const std::string word(part.begin(), part.end());
    const std::optional<DType> dtype = named<DType>(word);
    if (dtype == DType::i8)
      throw UsageError(R"(--dtype is "i8"; it is that of q, and i8 is for keys and values (a manifest's "kv_dtypes"))");
    if (!dtype || !is_floating(*dtype)) {
      std::vector<std::string_view> names;
      names.reserve(known.size());
      for (const DType candidate : known) names.push_back(name_of(candidate));
      const std::string_view meant = dtype_of_frameworks(word);
      throw UsageError(
          fmt::format("unknown dtype {}{}", in_quotes(word),
                      meant.empty() ? suggestion(word, names) : fmt::format("; did you mean \"{}\"?", meant)));
    }
    dtypes.push_back(*dtype);
  }
  return dtypes;
}

Shard shard_from(std::string_view option, Text text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos) {
    throw UsageError(fmt::format("{} is {}; it must be i/n with 0 <= i < n, as 0/4", option, in_quotes(text)));
  }
  Shard shard;
  shard.index = whole<std::int64_t>(fmt::format("{}'s index", option), text.substr(0, slash), 0);
  shard.count = whole<std::int64_t>(fmt::format("{}'s count", option), text.substr(slash + 1), 1);
  if (shard.index >= shard.count) {
    throw UsageError(fmt::format("{} is {}; it must be i/n with 0 <= i < n: the last of {} is {}/{}", option, text,
                                 shard.count, shard.count - 1, shard.count));
  }
  return shard;
}

}  // namespace

Completions files() {
  return {.files = true};
}

Completions folders() {
  return {.folders = true};
}

Value<std::string> any_text(std::string_view word, Offer offer) {
  return {word, [](std::string_view, Text text) { return text; }, std::move(offer)};
}

Value<std::string> text_naming(std::string_view what, std::string_view word, Offer offer) {
  return {word,
          [what](std::string_view option, Text text) {
            if (text.empty()) throw UsageError(fmt::format("{} is empty; it must name {}", option, what));
            return text;
          },
          std::move(offer)};
}

Value<std::string> file_name() {
  return text_naming("a file", "FILE", files);
}

template <class Integer>
Value<Integer> whole_number(Integer least) {
  return {"N", [least](std::string_view option, Text text) { return whole(option, text, least); }};
}
template Value<int> whole_number(int);
template Value<std::int64_t> whole_number(std::int64_t);
template Value<std::uint64_t> whole_number(std::uint64_t);

Value<std::chrono::milliseconds> duration() {
  return {"TIME", time_of};
}

Value<std::uint64_t> memory_size() {
  return {"SIZE", bytes_of};
}

Value<std::vector<DType>> dtype_list() {
  return {"DTYPE", dtypes_of, [] { return Completions{.words = {"f64", "f32", "f16", "bf16"}, .listed = true}; }};
}

Value<Shard> shard_of_run() {
  return {"I/N", shard_from};
}

std::size_t place_among(std::span<const std::string_view> words, std::string_view option, Text text) {
  const auto found = std::ranges::find(words, text);
  if (found == words.end())
    throw UsageError(fmt::format("unknown {} {}{}", option, in_quotes(text), suggestion(text, words)));
  return static_cast<std::size_t>(found - words.begin());
}

}  // namespace attest
