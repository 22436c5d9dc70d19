#include "reports/command_line/option_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <ranges>
#include <vector>

#include "core/support/errors.h"
#include "core/support/names.h"
#include "fuzz/libfuzzer.h"

namespace attest {

using Text = const std::string&;

template <class Integer>
Integer whole_number(std::string_view option, Text text, Integer least) {
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
template int whole_number(std::string_view, Text, int);
template std::int64_t whole_number(std::string_view, Text, std::int64_t);
template std::uint64_t whole_number(std::string_view, Text, std::uint64_t);

double tolerance_number(std::string_view option, Text text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= 0))
    throw UsageError(fmt::format("{} is {}; it must be a number of at least 0, such as 1e-5", option, in_quotes(text)));
  return value;
}

std::chrono::milliseconds duration(std::string_view option, Text text) {
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
  throw UsageError(fmt::format("{} is {}; it must be a time from 1ms to a year such as 500ms, 90s, 10m or 2h", option,
                               in_quotes(text)));
}

std::uint64_t memory_size(std::string_view option, Text text) {
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

void add_dtypes(Options& options, Text text) {
  static constexpr std::array known{DType::f64, DType::f32, DType::f16, DType::bf16, DType::f8_e4m3, DType::f8_e5m2};
  const std::string listed = text.empty() ? "," : text;  // split makes no word of an empty text; this makes empty ones
  for (const auto part : std::views::split(listed, ',')) {
    const std::string word(part.begin(), part.end());
    const std::optional<DType> dtype = named<DType>(word);
    if (!dtype || *dtype == DType::boolean) {
      std::vector<std::string_view> names;
      names.reserve(known.size());
      for (const DType candidate : known) names.push_back(name_of(candidate));
      throw UsageError(fmt::format("unknown dtype {}{}", in_quotes(word), suggestion(word, names)));
    }
    if (std::ranges::find(options.dtypes, *dtype) == options.dtypes.end()) options.dtypes.push_back(*dtype);
  }
}

namespace {

/// Of a word among those that the option knows.
template <std::size_t Count>
std::size_t place_of(std::string_view option, Text word, const std::array<std::string_view, Count>& known) {
  const auto found = std::ranges::find(known, word);
  if (found == known.end())
    throw UsageError(fmt::format("unknown {} {}{}", option, in_quotes(word), suggestion(word, known)));
  return static_cast<std::size_t>(found - known.begin());
}

}  // namespace

bool is_libfuzzer(Text text) {
  if (place_of("--engine", text, engine_names) == 0) return false;
  if (!has_libfuzzer())
    throw UsageError("--engine libfuzzer: this build has no libFuzzer; install libclang-rt-19-dev and build again");
  return true;
}

Language language_named(Text text) {
  return static_cast<Language>(place_of("--language", text, Words<Language>::names));
}

CiService ci_service_named(Text text) {
  return static_cast<CiService>(place_of("--ci", text, Words<CiService>::names));
}

void set_shard(Options& options, Text text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos) {
    throw UsageError(fmt::format("--shard is {}; it must be i/n with 0 <= i < n, as 0/4", in_quotes(text)));
  }
  options.shard.index = whole_number<std::int64_t>("--shard's index", text.substr(0, slash), 0);
  options.shard.count = whole_number<std::int64_t>("--shard's count", text.substr(slash + 1), 1);
  if (options.shard.index >= options.shard.count) {
    throw UsageError(fmt::format("--shard is {}; it must be i/n with 0 <= i < n: the last of {} is {}/{}", text,
                                 options.shard.count, options.shard.count - 1, options.shard.count));
  }
}

// At N = 1 or dk = 1 false statements become true; beyond 512 no proof is finished.
ProofShape proof_shape(std::string_view option, Text text) {
  std::vector<std::int64_t> numbers;
  for (const auto part : std::views::split(text, ','))
    numbers.push_back(whole_number<std::int64_t>(option, std::string(part.begin(), part.end()), 1));
  const auto most = [](std::int64_t n) { return n <= 512; };
  if (numbers.size() != 5 || !std::ranges::all_of(numbers, most) || numbers[1] < 2 || numbers[2] < 2) {
    throw UsageError(
        fmt::format("{} is {}; it must be M,N,dk,dv,h with N and dk from 2 and all up to 512, as 3,3,2,2,2", option,
                    in_quotes(text)));
  }
  return {numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]};
}

std::filesystem::path file_named(std::string_view option, Text text) {
  if (text.empty()) throw UsageError(fmt::format("{} is empty; it must name a file", option));
  return text;
}

void set_baseline(Options& options, Text text) {
  if (text.empty()) throw UsageError("--baseline is empty; it must name a file of tolerances or a run");
  options.baseline = text;
}

void set_inconclusive(Options& options, Text text) {
  if (text != "held")
    throw UsageError(fmt::format("--inconclusive is {}; the only other reading is held", in_quotes(text)));
  options.inconclusive_held = true;
}

}  // namespace attest
