#include "reports/run/shape_options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>

#include "core/support/errors.h"
#include "core/support/files.h"
#include "core/support/names.h"

namespace attest {
namespace {

/// Whole numbers with commas between them; empty for anything else.
std::vector<std::int64_t> numbers_in(std::string_view text) {
  std::vector<std::int64_t> numbers;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    std::int64_t number = 0;
    const auto [stop, error] = std::from_chars(at, end, number);
    if (error != std::errc() || number < 0) return {};
    numbers.push_back(number);
    if (stop == end) return numbers;
    if (*stop != ',') return {};
    at = stop + 1;
  }
}

bool is_too_large(const Extents& e) {
  const auto d = [](std::int64_t extent) { return static_cast<double>(extent); };
  const double most = static_cast<double>(most_elements_of_large);
  return d(e.batch) * d(e.heads) * d(std::max(e.queries, e.keys)) * d(std::max(e.dk, e.dv)) > most;
}

}  // namespace

std::string shape_options(std::string_view recorded) {
  if (recorded.empty()) return " --no-large";
  std::string options;
  std::istringstream words{std::string(recorded)};
  for (std::string word; words >> word;) {
    if (word == name_of(LargeCases::all)) options += " --shapes-only";
    if (word.find(',') != std::string::npos) options += " --shape " + word;
  }
  return options;
}

Extents shape_of(std::string_view option, std::string_view text) {
  const std::vector<std::int64_t> n = numbers_in(text);
  const auto refuse = [&](std::string_view rule) {
    throw UsageError(fmt::format("{} is {}; {}", option, in_quotes(text), rule));
  };
  if (n.size() != 6 && n.size() != 7)
    refuse("it must be B,H,KV,M,N,DK or B,H,KV,M,N,DK,DV in whole numbers, as 1,8,2,128,200,64");
  const Extents e{
      .batch = n[0], .heads = n[1], .kv_heads = n[2], .queries = n[3], .keys = n[4], .dk = n[5], .dv = n.back()};
  if (const std::string why = why_no_shape(e); !why.empty()) refuse(why);
  return e;
}

std::string text_of(const Extents& e) {
  const std::string values = e.dv == e.dk ? "" : fmt::format(",{}", e.dv);
  return fmt::format("{},{},{},{},{},{}{}", e.batch, e.heads, e.kv_heads, e.queries, e.keys, e.dk, values);
}

std::string why_no_shape(const Extents& e) {
  if (std::min({e.batch, e.heads, e.kv_heads, e.queries, e.keys, e.dk, e.dv}) < 1)
    return "every extent must be at least 1";
  if (std::max({e.batch, e.heads, e.dk, e.dv}) > 512 || std::max(e.queries, e.keys) > most_tokens_of_large)
    return fmt::format("B, H, DK and DV may be 512 at most, M and N {}", most_tokens_of_large);
  if (e.heads % e.kv_heads != 0) return "H must be a multiple of KV";
  if (is_too_large(e)) return fmt::format("a tensor may have {} elements at most", most_elements_of_large);
  return {};
}

std::vector<Extents> shapes_in(std::string_view option, const std::filesystem::path& file) {
  std::vector<Extents> shapes;
  std::istringstream lines(read_file(file));
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    line.erase(std::min(line.find('#'), line.size()));
    std::erase_if(line, [](char c) { return c == ' ' || c == '\t' || c == '\r'; });
    if (!line.empty()) shapes.push_back(shape_of(fmt::format("{} {}, line {},", option, file.string(), number), line));
  }
  if (shapes.empty())
    throw UsageError(
        fmt::format("{} {}: holds no shape; write one a line, as 1,8,2,128,200,64", option, file.string()));
  return shapes;
}

double memory_here() {
  return static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

void refuse_beyond_memory(const std::vector<Extents>& shapes, std::int64_t element_bytes, int jobs, double memory) {
  constexpr double times = 4, gib = 0x1p30;
  for (const Extents& e : shapes) {
    const auto d = [](std::int64_t extent) { return static_cast<double>(extent); };
    const double elements =
        d(e.batch) * (d(e.heads) * d(e.queries) * d(e.dk + e.dv) + d(e.kv_heads) * d(e.keys) * d(e.dk + e.dv));
    const double needed = times * elements * d(element_bytes);
    if (needed * jobs <= memory) continue;
    throw UsageError(
        fmt::format("the shape {},{},{},{},{},{},{} takes about {:.0f} GiB in {}, and this machine has {:.0f}; {}",
                    e.batch, e.heads, e.kv_heads, e.queries, e.keys, e.dk, e.dv, std::ceil(needed / gib),
                    jobs == 1 ? std::string("one job") : fmt::format("each of {} jobs", jobs), std::floor(memory / gib),
                    needed <= memory ? fmt::format("give --jobs {}", static_cast<int>(memory / needed))
                                     : std::string("give a smaller one, or a narrower --dtype")));
  }
}

}  // namespace attest
