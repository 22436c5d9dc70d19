#include "reports/conclusion/known.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "core/problem/case.h"
#include "core/support/files.h"
#include "core/support/names.h"
#include "core/value/dtype.h"
#include "properties/catalogue/property.h"
#include "reports/text/toml_entries.h"

namespace attest {
namespace {

constexpr std::array<std::string_view, 7> keys{"kernel", "version", "dtype", "property", "reason", "date", "class"};

constexpr std::string_view needs = "kernel, dtype, property, reason and date";

std::string date_of(const TomlEntries& file, const toml::table& entry) {
  const toml::node& value = file.required(entry, "date", needs);
  if (!value.is_date()) file.refuse(value, "date must be a day without quotes, as date = 2026-01-31");
  const toml::date& day = value.as_date()->get();
  return fmt::format("{:04}-{:02}-{:02}", day.year, day.month, day.day);
}

KnownFinding finding_of(const TomlEntries& file, const toml::table& entry) {
  const auto text = [&](std::string_view key) { return file.text(entry, key, needs); };
  KnownFinding finding{.kernel = text("kernel"),
                       .version = file.text(entry, "version"),
                       .dtype = text("dtype"),
                       .property = text("property"),
                       .kind = file.text(entry, "class"),
                       .reason = text("reason"),
                       .date = date_of(file, entry),
                       .line = TomlEntries::line_of(entry)};
  const std::optional<DType> dtype = named<DType>(finding.dtype);
  if (!dtype || !is_floating(*dtype)) {
    file.refuse(*entry.get("dtype"),
                fmt::format("unknown dtype {}; it must be f64, f32, f16 or bf16", in_quotes(finding.dtype)));
  }
  std::vector<std::string_view> names;
  for (const Property* property : catalogue()) names.push_back(property->name);
  if (properties_matching(finding.property).empty()) {
    file.refuse(*entry.get("property"), fmt::format("no property of attest list --properties is named {}{}",
                                                    in_quotes(finding.property), suggestion(finding.property, names)));
  }
  return finding;
}

/// Whether a version is the one that is known, or goes on behind it with a part of its own: 1.13.1 and 1.13+cpu are of
/// 1.13, and 1.130 is not.
bool is_of_version(const std::string& known, std::string_view version) {
  if (known.empty()) return true;
  if (!version.starts_with(known)) return false;
  const std::string_view rest = version.substr(known.size());
  return rest.empty() || std::string_view(".+-").find(rest.front()) != std::string_view::npos;
}

bool is_of(const KnownFinding& known, const KernelSummary& kernel) {
  return known.dtype == kernel.dtype && (known.kernel == kernel.id || known.kernel == kernel.name) &&
         is_of_version(known.version, kernel.version);
}

/// A violated property whose saved violations are all of the kind that is expected.
bool is_expected(const KnownFinding& known, const PropertySummary& property) {
  if (property.verdict != Outcome::violated) return false;
  return known.kind.empty() || std::ranges::all_of(property.findings, [&](const FindingRecord& finding) {
           return finding.verdict.outcome != Outcome::violated || finding.kind() == known.kind;
         });
}

bool is_glob(std::string_view property) {
  return property.find_first_of("*?[") != std::string_view::npos;
}

bool is_about(const KnownFinding& known, std::string_view property) {
  if (!is_glob(known.property)) return known.property == property;
  return std::ranges::count(properties_matching(known.property), property, &Property::name) > 0;
}

std::string about(std::string_view property, std::string_view kernel, std::string_view dtype) {
  return fmt::format("{} by {} in {}", property, kernel, dtype);
}

std::string about(const KnownFinding& known) {
  const std::string version = known.version.empty() ? "" : " " + known.version;
  return about(known.property, known.kernel + version, known.dtype);
}

}  // namespace

std::vector<KnownFinding> parse_known_findings(const std::string& text, const std::string& source) {
  const TomlEntries file(text, source, "finding", keys);
  std::vector<KnownFinding> findings;
  for (const toml::table* entry : file.entries()) {
    KnownFinding finding = finding_of(file, *entry);
    const auto same = std::ranges::find_if(findings, [&](const KnownFinding& other) {
      return other.kernel == finding.kernel && other.version == finding.version && other.dtype == finding.dtype &&
             other.property == finding.property;
    });
    if (same != findings.end()) {
      file.refuse(*entry, fmt::format("{} stands at line {} already; keep one of the two", about(finding), same->line));
    }
    findings.push_back(std::move(finding));
  }
  return findings;
}

std::vector<KnownFinding> read_known_findings(const std::filesystem::path& file) {
  return parse_known_findings(read_file(file), file.string());
}

KnownComparison compare_with_known(const std::vector<KnownFinding>& known, std::string_view source,
                                   const Summary& summary, bool complete) {
  KnownComparison result{.source = std::string(source), .expected = {}, .problems = {}, .remarks = {}};
  std::vector<bool> reached(known.size()), shown(known.size());
  for (const KernelSummary& kernel : summary.kernels) {
    for (const PropertySummary& property : kernel.properties) {
      const Subject subject{property.name, kernel.id, kernel.dtype};
      for (std::size_t i = 0; i < known.size(); ++i) {
        if (!is_about(known[i], property.name) || !is_of(known[i], kernel)) continue;
        reached[i] = true;
        if (is_expected(known[i], property)) {
          result.expected.insert(subject);
          shown[i] = true;
        } else if (property.verdict != Outcome::violated && known[i].property == property.name) {
          const std::string gone =
              fmt::format("{}, line {}: {} ", source, known[i].line, about(property.name, kernel.name, kernel.dtype));
          if (complete) {
            result.problems.push_back(
                fmt::format("GONE {}is expected to be violated since {} ({}) and was {} on {} cases; remove the entry",
                            gone, known[i].date, known[i].reason, name_of(property.verdict), property.tally.cases()));
          } else {
            result.remarks.push_back(gone + "did not show in the part of the run that was made");
          }
        }
      }
      if (property.verdict == Outcome::violated && !result.expected.contains(subject)) {
        result.problems.push_back(
            fmt::format("NEW {}: {}", about(property.name, kernel.name, kernel.dtype), property.reason));
      }
    }
  }
  for (std::size_t i = 0; i < known.size(); ++i) {
    const bool several = reached[i] && !shown[i] && is_glob(known[i].property);
    if (several && complete)
      result.problems.push_back(
          fmt::format("GONE {}, line {}: {} is expected to be violated since {} ({}) and was not; remove the entry",
                      source, known[i].line, about(known[i]), known[i].date, known[i].reason));
    if (reached[i]) continue;
    result.remarks.push_back(
        fmt::format("{}, line {}: {} is not part of this run", source, known[i].line, about(known[i])));
  }
  return result;
}

}  // namespace attest
