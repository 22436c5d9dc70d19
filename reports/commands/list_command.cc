#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <map>

#include "core/bound/machine_checked.h"
#include "core/isolation/adapters.h"
#include "core/kernel/kernel_under_test.h"
#include "core/support/errors.h"
#include "core/support/json_writer.h"
#include "properties/catalogue/property.h"
#include "properties/faults/cheats.h"
#include "properties/faults/faults.h"
#include "reports/commands/commands.h"
#include "reports/text/text.h"

namespace attest {
namespace {

struct KernelLine {
  std::string id, summary;
};

std::vector<KernelLine> kernel_lines() {
  std::map<std::string, std::string> summaries;
  for (const std::vector<KernelEntry>& entries :
       {builtin_kernels(), core_kernels(), document_kernels(), fault_kernels(), control_kernels()}) {
    for (const KernelEntry& entry : entries) summaries[entry.id] = entry.summary;
  }
  for (const OutsideName& name : cheat_kernels()) summaries[name.id] = name.summary;
  for (const AdapterFamily& family : adapter_families()) {
    for (const AdapterKernel& kernel : family.kernels) summaries[std::string(kernel.id)] = kernel.summary;
  }
  std::vector<KernelLine> lines;
  for (const std::string& id : known_kernels()) lines.push_back({id, summaries[id]});
  return lines;
}

/// A kernel of the program's own in a dtype, and what its arithmetic does that the proof of the tolerance by machine
/// does not speak of, or speaks of in another form (machine_checked.h).
struct ToleranceLine {
  std::string id;
  DType dtype;
  std::string text;
  std::vector<std::string> beyond, in_another_form;
};

std::vector<ToleranceLine> tolerance_lines() {
  std::vector<ToleranceLine> lines;
  for (const std::vector<KernelEntry>& entries : {builtin_kernels(), core_kernels(), control_kernels()})
    for (const KernelEntry& entry : entries) {
      if (entry.digits > 0) continue;  // a wider scalar has a tolerance of its own (error-bounds.md, 1.8)
      const auto kernel = entry.make();
      for (const auto& [dtype, arithmetic] : kernel->manifest().arithmetic.usual) {
        const std::vector<std::string_view> beyond = beyond_the_proof(arithmetic),
                                            other = proved_in_another_form(arithmetic);
        lines.push_back(
            {entry.id, dtype, proof_text(arithmetic), {beyond.begin(), beyond.end()}, {other.begin(), other.end()}});
      }
    }
  return lines;
}

/// The same for a reader: each thing that is said, and of which kernels, with their dtypes where it is not all of them.
std::string tolerance_text() {
  const std::vector<ToleranceLine> lines = tolerance_lines();
  std::map<std::string, std::size_t> dtypes_of;
  std::vector<std::string> said;
  for (const ToleranceLine& line : lines) {
    ++dtypes_of[line.id];
    if (std::ranges::find(said, line.text) == said.end()) said.push_back(line.text);
  }
  std::string text;
  for (const std::string& what : said) {
    std::vector<std::string> kernels;
    std::map<std::string, std::vector<std::string_view>> dtypes;
    for (const ToleranceLine& line : lines) {
      if (line.text != what) continue;
      if (dtypes[line.id].empty()) kernels.push_back(line.id);
      dtypes[line.id].push_back(name_of(line.dtype));
    }
    for (std::string& kernel : kernels)
      if (const auto& some = dtypes[kernel]; some.size() < dtypes_of[kernel])
        kernel += fmt::format(" ({})", fmt::join(some, " "));
    // At most 80 columns.
    text += columns({{"", what}}, {false, false}, 80);
    text += columns({{"  ", fmt::format("{}", fmt::join(kernels, ", "))}}, {false, false}, 80);
  }
  return text;
}

struct DTypeLine {
  DType dtype;
  int precision, min_exponent;
  double largest;
};

std::vector<DTypeLine> dtype_lines() {
  std::vector<DTypeLine> lines;
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::f8_e4m3, DType::f8_e5m2}) {
    const Format& format = format_of(dtype);
    lines.push_back({dtype, format.precision, format.min_exponent, format.largest});
  }
  return lines;
}

/// What is listed.
struct Listed {
  bool kernels = false, properties = false, dtypes = false, tolerances = false;
};

std::string as_json(const Listed& listed) {
  JsonWriter json;
  json.begin_object();
  if (listed.kernels) {
    json.key("kernels").begin_array();
    for (const KernelLine& line : kernel_lines()) {
      json.begin_object().member("id", line.id).member("summary", line.summary).end_object();
    }
    json.end_array();
  }
  if (listed.properties) {
    json.key("properties").begin_array();
    for (const Property* property : catalogue()) {
      json.begin_object()
          .member("name", property->name)
          .member("statement", property->statement)
          .member("source", property->source)
          .member("needs", property->needs)
          .member("floating_point", property->floating_point)
          .end_object();
    }
    json.end_array();
  }
  if (listed.dtypes) {
    json.key("dtypes").begin_array();
    for (const DTypeLine& line : dtype_lines()) {
      json.begin_object()
          .member("name", name_of(line.dtype))
          .member("bytes", size_of(line.dtype))
          .member("precision", line.precision);
      json.member("min_exponent", line.min_exponent).member("largest", line.largest).end_object();
    }
    json.end_array();
  }
  if (listed.tolerances) {
    json.key("tolerances").begin_array();
    for (const ToleranceLine& line : tolerance_lines()) {
      json.begin_object().member("id", line.id).member("dtype", name_of(line.dtype));
      json.member("machine_checked", line.beyond.empty() && line.in_another_form.empty());
      for (const auto& [key, all] : {std::pair("beyond", &line.beyond), {"in_another_form", &line.in_another_form}}) {
        json.key(key).begin_array();
        for (const std::string& what : *all) json.value(what);
        json.end_array();
      }
      json.end_object();
    }
    json.end_array();
  }
  return json.end_object().text() + '\n';
}

std::string cell(std::string_view text) {
  std::string escaped;
  for (const char c : text) escaped += c == '|' ? std::string("\\|") : std::string(1, c);
  return escaped;
}

std::string properties_as_markdown() {
  std::string text = "| name | statement | source | needs | in floating point |\n|---|---|---|---|---|\n";
  for (const Property* property : catalogue()) {
    text += fmt::format("| `{}` | {} | {} | {} | {} |\n", property->name, cell(property->statement),
                        cell(property->source), cell(property->needs), cell(property->floating_point));
  }
  return text;
}

std::string as_text(const Listed& listed) {
  std::string text;
  const auto section = [&](bool wanted, std::string_view title, const auto& body) {
    if (!wanted) return;
    text += fmt::format("{}{}:\n{}", text.empty() ? "" : "\n", title, body());
  };
  section(listed.kernels, "kernels", [] {
    std::vector<std::vector<std::string>> rows;
    for (const KernelLine& line : kernel_lines()) rows.push_back({"  " + line.id, line.summary});
    rows.push_back({"  exec:COMMAND", "a program that speaks the protocol of kernel-interface.md, section 2"});
    rows.push_back({"  PATH.so", "a shared library with the functions of kernel-interface.md, section 1"});
    return columns(rows, {false, false});
  });
  section(listed.properties, "properties", [] {
    std::string body;
    for (const Property* property : catalogue()) {
      body += fmt::format("  {}\n    {}\n    source: {}; needs: {}; in floating point: {}\n", property->name,
                          property->statement, property->source, property->needs, property->floating_point);
    }
    return body;
  });
  section(listed.dtypes, "dtypes", [] {
    std::vector<std::vector<std::string>> rows;
    for (const DTypeLine& line : dtype_lines()) {
      rows.push_back({fmt::format("  {}", name_of(line.dtype)), fmt::format("{} significant bits", line.precision),
                      fmt::format("largest {:g}", line.largest)});
    }
    return columns(rows, {false, true, false});
  });
  section(listed.tolerances, "tolerances (properties/proofs/coq/rounding/README.md has more)", tolerance_text);
  return text;
}

struct ListOptions {
  Listed listed;  ///< none: all of them
  bool json = false, markdown = false;

  void declare(OptionList& list) {
    list.flag("--kernels", listed.kernels, "kernels that have a name");
    list.flag("--properties", listed.properties, "the catalogue of properties");
    list.flag("--dtypes", listed.dtypes, "number formats");
    list.flag("--tolerances", listed.tolerances,
              "kernels whose tolerance is proved by machine, and what the proof does not speak of in others");
    list.flag("--json", json, "as JSON");
    list.flag("--markdown", markdown, "properties as a Markdown table");
  }
  void refuse() const {
    refuse_if(markdown && (listed.kernels || listed.dtypes || listed.tolerances || !listed.properties),
              "--markdown is for properties; use attest list --properties --markdown");
    refuse_if(markdown && json, "--markdown and --json exclude each other; give one");
  }
};

int print_list(const ListOptions& options) {
  Listed listed = options.listed;
  if (!listed.kernels && !listed.properties && !listed.dtypes && !listed.tolerances) listed = {true, true, true, true};
  std::string text;
  if (options.markdown) {
    text = properties_as_markdown();
  } else {
    text = options.json ? as_json(listed) : as_text(listed);
  }
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace

Command list_command() {
  return {with_options<ListOptions>(print_list), "list", "attest list [OPTIONS]",
          "Lists kernels, properties, number formats and what is proved of tolerances.",
          "attest list --properties --markdown"};
}

}  // namespace attest
