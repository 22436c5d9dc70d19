#include "reports/results/tolerance.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/support/json_writer.h"
#include "core/value/dtype.h"
#include "reports/results/fault_margins.h"
#include "reports/results/figures.h"
#include "reports/run/shape_options.h"
#include "reports/run_folder/run_folder.h"
#include "reports/run_folder/version.h"
#include "reports/text/text.h"

namespace attest {
namespace {

/// At least `size`, with two significant digits.
double rounded_up(double size) {
  if (!(size > 0) || std::isinf(size)) return size;
  for (double more = size;; more *= 1.01) {
    const std::string text = fmt::format("{:.1e}", more);
    double rounded = 0;
    std::from_chars(text.data(), text.data() + text.size(), rounded);
    if (rounded >= size) return rounded;
  }
}

/// What was needed in one draw of inputs is less than another needs. The largest of n Gaussian errors grows as
/// sqrt(2 log n): from a thousand elements to a billion it does not double.
Tolerance with_room(const Tolerance& needed) {
  return {.atol = rounded_up(2 * needed.atol), .rtol = rounded_up(2 * needed.rtol)};
}

std::string accumulate_of(const Journal& journal, const std::string& id, const std::string& dtype) {
  for (const KernelRecord& kernel : journal.kernels) {
    if (kernel.id != id || kernel.manifest.empty()) continue;
    const auto manifest = nlohmann::json::parse(kernel.manifest, nullptr, /*allow_exceptions=*/false);
    if (!manifest.is_object() || !manifest.contains("arithmetic")) return {};
    const auto& all = manifest["arithmetic"];
    if (!all.is_object()) return {};
    const auto& one = all.contains(dtype) ? all[dtype] : all;
    if (one.is_object() && one.contains("accumulate") && one["accumulate"].is_string()) return one["accumulate"];
  }
  return {};
}

const Format* format_named(const std::string& dtype) {
  const std::optional<DType> known = named<DType>(dtype);
  return known && is_floating(*known) ? &format_of(*known) : nullptr;
}

std::string values_name(const ErrorClass& key) {
  return key.values.empty() ? "not drawn" : key.values;
}

/// The rows of one table; `row` holds what they share.
void add_rows(std::vector<ToleranceRow>& rows, const ToleranceRow& row, const ErrorTable& table,
              const std::optional<Alarm>& alarm) {
  ErrorCell all;
  std::map<std::size_t, ErrorCell> by_keys;
  std::map<MaskEffect, ErrorCell> by_mask;
  std::map<std::string, ErrorCell> by_values;
  for (const auto& [key, cell] : table.cells) {
    all.merge(cell);
    by_keys[key.keys].merge(cell);
    by_mask[key.mask].merge(cell);
    by_values[values_name(key)].merge(cell);
  }
  ErrorCell ordinary;
  for (const auto& [keys, cell] : table.ordinary) ordinary.merge(cell);
  const Format* const format = format_named(row.dtype);
  const auto add = [&](const ErrorCell& cell) -> ToleranceRow& {
    ToleranceRow& one = rows.emplace_back(row);
    one.cell = cell;
    if (!one.bred) one.tolerance = suggested(cell, format ? format->unit : 0, format ? format->min_normal : 0);
    return one;
  };
  add(all).alarm = alarm;
  const auto add_ordinary = [&](const ErrorCell& cell) -> ToleranceRow& {
    ToleranceRow& one = add(cell);
    one.values = "ordinary";
    one.tolerance = with_room(one.tolerance);
    if (const std::optional<DType> dtype = named<DType>(row.dtype);
        dtype && is_floating(*dtype) && row.gradient.empty()) {
      Misses misses = misses_of(one.tolerance, *dtype);
      one.missed = std::move(misses.faults), one.missed_of = misses.of;
    }
    return one;
  };
  const auto longest = table.ordinary.find(key_classes - 1);
  const std::int64_t long_cases = longest == table.ordinary.end() ? 0 : longest->second.cases;
  // A bred case keeps the words of the drawn one that it descends from, and not its numbers.
  if (ordinary.cases > 0 && !row.bred) add_ordinary(ordinary).long_cases = long_cases;
  if (table.ordinary.size() > 1 && !row.bred) {
    for (const auto& [keys, cell] : table.ordinary) add_ordinary(cell).keys = key_class_name(keys);
  }
  for (const auto& [keys, cell] : by_keys) add(cell).keys = key_class_name(keys);
  for (const auto& [mask, cell] : by_mask) add(cell).mask = name_of(mask);
  for (const auto& [values, cell] : by_values) add(cell).values = values;
  for (const auto& [key, cell] : table.cells) {
    ToleranceRow& one = add(cell);
    one.keys = key_class_name(key.keys), one.mask = name_of(key.mask), one.values = values_name(key);
  }
}

std::string csv_field(const std::string& words) {
  const std::string text = one_line(words);
  // A field that begins like a formula would be one in a spreadsheet.
  const bool formula = !text.empty() && std::string_view("=+-@").find(text.front()) != std::string_view::npos;
  std::string quoted = formula ? "\"'" : "\"";
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + '"';
}

}  // namespace

Tolerance suggested(const ErrorCell& cell, double unit, double least) {
  std::size_t step = 0;
  while (step + 1 < relative_steps.size() && size_of_code(cell.atol[step + 1]) <= size_of_code(cell.atol[step]) / 2 &&
         cell.atol[step] != 0) {
    ++step;
  }
  const double atol = size_of_code(cell.atol[step]);
  return {.atol = rounded_up(atol > 0 ? std::max(atol, least) : 0.0), .rtol = rounded_up(relative_steps[step] * unit)};
}

std::string ToleranceRow::caution() const {
  constexpr std::int64_t enough = 50, enough_long = 10;
  if (!is_ordinary() || keys != "all" || (cell.cases >= enough && long_cases >= enough_long)) return {};
  return fmt::format("from {} ordinary {}, {} of more than 64 keys: too few to rely on", cell.cases,
                     cell.cases == 1 ? "case" : "cases", long_cases);
}

std::vector<ToleranceRow> tolerance_rows(const Summary& summary, const Journal& journal) {
  std::vector<ToleranceRow> rows;
  for (const KernelSummary& kernel : summary.kernels) {
    for (const PropertySummary& property : kernel.properties) {
      if (property.tally.errors.empty()) continue;
      ToleranceRow row;
      row.kernel = kernel.id, row.name = kernel.name, row.dtype = kernel.dtype, row.property = property.name;
      // The property of one gradient has its name at the end.
      constexpr std::string_view of_gradient = ".oracle-";
      if (const std::size_t at = row.property.find(of_gradient); at != std::string::npos)
        row.gradient = row.property.substr(at + of_gradient.size());
      row.bred = journal.run && journal.run->fuzz;
      if (journal.run) row.case_files = journal.run->case_files;
      row.accumulate = accumulate_of(journal, kernel.id, kernel.dtype);
      const std::optional<AlarmTally>& alarm = property.tally.alarm;
      add_rows(rows, row, property.tally.errors, alarm ? std::optional(alarm->all) : std::nullopt);
    }
  }
  return rows;
}

std::string rerun_line(const ToleranceRow& row, const Summary& summary, std::int64_t k) {
  if (k < 0 || row.bred) return {};
  if (static_cast<std::size_t>(k) < row.case_files.size()) {
    return fmt::format("{} check --kernel {} --dtype {} --property {} --case {}", command_name(),
                       shell_quoted(row.kernel), shell_quoted(row.dtype), shell_quoted(row.property),
                       shell_quoted(row.case_files[static_cast<std::size_t>(k)]));
  }
  if (row.values == "not drawn") return {};
  return rerun_line(row.kernel, row.dtype, row.property, summary.seed, summary.shapes, k);
}

std::string rerun_line(const std::string& kernel, const std::string& dtype, const std::string& property,
                       std::uint64_t seed, std::string_view shapes, std::int64_t k) {
  // One shard of k + 1 that takes k alone of the cases up to it.
  return fmt::format("{} check --kernel {} --dtype {} --property {} --seed {} --cases {} --shard {}/{}{}",
                     command_name(), shell_quoted(kernel), shell_quoted(dtype), shell_quoted(property), seed, k + 1, k,
                     k + 1, shape_options(shapes));
}

std::string tolerances_json(const std::vector<ToleranceRow>& rows, const Summary& summary, const Journal& journal) {
  JsonWriter json;
  json.begin_object().member("schema", tolerances_schema).member("written_by", version());
  json.member("seed", summary.seed);
  write_figures(json, figures_of(summary, journal));
  json.key("rows").begin_array();
  for (const ToleranceRow& row : rows) {
    const ErrorCell& cell = row.cell;
    json.begin_object().member("kernel", row.kernel).member("name", row.name).member("property", row.property);
    json.member("dtype", row.dtype).member("accumulate", row.accumulate);
    json.member("keys", row.keys).member("mask", row.mask).member("values", row.values);
    json.member("cases", cell.cases).member("elements", cell.elements);
    json.member("worst_error", size_of_code(cell.worst_error)).member("worst_ulp", size_of_code(cell.worst_ulp));
    json.member("bound", "proved").member("worst_utilisation", size_of_code(cell.worst_utilisation));
    json.member("worst_normal_utilisation", size_of_code(cell.worst_normal));
    json.member("worst_subnormal_utilisation", size_of_code(cell.worst_subnormal));
    json.member("p999_utilisation", cell.quantile(0.999)).member("rms_utilisation", cell.root_mean_square());
    json.member("bias", cell.mean()).member("worst_k", cell.worst_k);
    json.member("worst_condition", size_of_code(cell.condition)).key("bounds").begin_array();
    json.begin_object().member("kind", "proved");
    json.member("worst_utilisation", size_of_code(cell.worst_utilisation)).end_object();
    if (row.alarm) {
      json.begin_object().member("kind", "probabilistic").member("worst_utilisation", row.alarm->worst);
      json.member("elements", row.alarm->elements).member("beyond", row.alarm->beyond);
      json.member("uncovered", row.alarm->uncovered).end_object();
    }
    json.begin_object().member("kind", "empirical");
    json.member("worst_error_over_u_sum", size_of_code(cell.worst_scaled)).end_object().end_array();
    json.key("budget").begin_object();
    for (std::size_t i = 0; i < stage_count; ++i)
      json.member(name_of(static_cast<Stage>(i)), static_cast<double>(cell.budget[i]) / 1000);
    json.end_object();
    if (row.bred) {
      json.key("atol").raw("null").key("rtol").raw("null");
    } else {
      json.member("atol", row.tolerance.atol).member("rtol", row.tolerance.rtol);
    }
    if (const std::string caution = row.caution(); !caution.empty()) json.member("caution", caution);
    if (row.is_ordinary()) {
      json.key("misses").begin_object().member("of", row.missed_of).key("faults").begin_array();
      for (const std::string_view fault : row.missed) json.value(fault);
      json.end_array().end_object();
    }
    json.member("worst_error_k", cell.error_k).member("rerun", rerun_line(row, summary, row.rerun_k()));
    json.member("rerun_of", row.rerun_of()).end_object();
  }
  return json.end_array().end_object().text() + '\n';
}

std::string tolerances_csv(const std::vector<ToleranceRow>& rows, const Summary& summary) {
  std::string csv =
      "kernel,name,property,dtype,accumulate,keys,mask,values,cases,elements,worst_error,worst_ulp,bound,"
      "worst_utilisation,worst_normal_utilisation,worst_subnormal_utilisation,p999_utilisation,rms_utilisation,bias,worst_k,worst_condition,worst_probabilistic_utilisation,"
      "worst_error_over_u_sum,budget_scores,budget_exp,budget_weights,budget_sums,budget_output,budget_underflow,atol,"
      "rtol,faults_missed,of_faults,rerun\n";
  for (const ToleranceRow& row : rows) {
    for (const std::string* text :
         {&row.kernel, &row.name, &row.property, &row.dtype, &row.accumulate, &row.keys, &row.mask, &row.values})
      csv += csv_field(*text) + ',';
    const ErrorCell& cell = row.cell;
    csv += fmt::format("{},{},{},{},proved,", cell.cases, cell.elements, number_text(size_of_code(cell.worst_error)),
                       number_text(size_of_code(cell.worst_ulp)));
    for (const double number :
         {size_of_code(cell.worst_utilisation), size_of_code(cell.worst_normal), size_of_code(cell.worst_subnormal),
          cell.quantile(0.999), cell.root_mean_square(), cell.mean()})
      csv += number_text(number) + ',';
    csv += fmt::format("{},{},{},{},", cell.worst_k, number_text(size_of_code(cell.condition)),
                       row.alarm ? number_text(row.alarm->worst) : "", number_text(size_of_code(cell.worst_scaled)));
    for (const std::uint16_t share : cell.budget) csv += number_text(share / 1000.0) + ',';
    csv += row.bred ? ",," : fmt::format("{},{},", number_text(row.tolerance.atol), number_text(row.tolerance.rtol));
    csv += row.is_ordinary() ? fmt::format("{},{},", row.missed.size(), row.missed_of) : ",,";
    csv += csv_field(rerun_line(row, summary, row.rerun_k())) + '\n';
  }
  return csv;
}

}  // namespace attest
