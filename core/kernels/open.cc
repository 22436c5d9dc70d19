// From what the user wrote after --kernel to kernels that can be called (kernel-interface.md, section 0).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/isolation/adapters.h"
#include "core/isolation/library.h"
#include "core/isolation/worker.h"
#include "core/kernel/forwarding_kernel.h"
#include "core/kernel/kernel_under_test.h"
#include "core/kernel/lse_convention.h"
#include "core/kernels/kernel_families.h"
#include "core/kernels/kernel_files.h"
#include "core/kernels/precise_name.h"
#include "core/support/names.h"

namespace attest {
namespace {

using process::Worker;

using Family = std::vector<KernelEntry> (*)();

/// In the order of `attest list`.
std::vector<Family>& families() {
  static std::vector<Family> known{builtin_kernels, core_kernels, document_kernels};
  return known;
}

using OutsideFamily = std::vector<OutsideName> (*)();

std::vector<OutsideFamily>& outside_families() {
  static std::vector<OutsideFamily> known;
  return known;
}

std::vector<OutsideName> outside_names() {
  std::vector<OutsideName> all;
  for (const OutsideFamily family : outside_families()) std::ranges::move(family(), std::back_inserter(all));
  std::ranges::sort(all, {}, &OutsideName::id);
  return all;
}

/// Those that a glob with their family's name matches: "*" means kernels of every kind, but no program that it starts.
std::vector<OutsideName> outside_names(std::string_view glob) {
  std::vector<OutsideName> all = outside_names();
  std::erase_if(all, [&](const OutsideName& name) {
    return !glob.starts_with(name.id.substr(0, name.id.find(':') + 1)) || !glob_match(glob, name.id);
  });
  return all;
}

std::vector<KernelEntry> entries() {
  std::vector<KernelEntry> all;
  for (const Family family : families()) std::ranges::move(family(), std::back_inserter(all));
  return all;
}

/// Parses the manifest of a worker that delivered one and makes a kernel of it. The contract has no key for the entries
/// a kernel offers, so one that does not state "operations" is asked for the smallest multihead problem once. A program
/// lays its memory out by itself, and would fill what is to stay untouched of memory that reaches far.
enum class Outside { library, program };
std::unique_ptr<Kernel> kernel_of(std::unique_ptr<Worker> worker, const std::string& json, Outside outside) {
  Manifest manifest;
  try {
    manifest = parse_manifest(json, fmt::format("{}: its manifest", worker->id()));
  } catch (const UsageError& error) {
    throw KernelLoadError(error.what());
  }
  if (outside == Outside::program && manifest.strides) manifest.far_strides = false;
  if (!nlohmann::json::parse(json).contains("operations")) {
    const DType dtype = manifest.dtypes.front();
    manifest.multihead = worker->call(process::smallest_multihead(dtype), {.output = dtype}).status == CallStatus::ok;
  }
  return with_lse_of_contract(process::worker_kernel(std::move(worker), std::move(manifest)));
}

std::unique_ptr<Kernel> open_worker(std::string id, process::Starter starter, const KernelOptions& options,
                                    Outside outside) {
  auto worker = std::make_unique<Worker>(std::move(id), std::move(starter), options);
  const std::string json = worker->first_manifest();
  return kernel_of(std::move(worker), json, outside);
}

std::unique_ptr<Worker> script_worker(const AdapterFamily& family, const std::string& id, const char* program,
                                      const KernelOptions& options) {
  const auto folder = adapters_folder();
  if (folder.empty()) {
    throw KernelLoadError(fmt::format(
        "{}: the adapter scripts are nowhere to be found; set ATTEST_ADAPTERS to the folder core/adapters", id));
  }
  const auto script = folder / family.script;
  const std::string name = id.substr(id.find(':') + 1);
  return std::make_unique<Worker>(id, process::program_starter({program, script.string(), name}, options), options);
}

/// These libraries take a second to load, so all the processes are started before the first is waited for.
std::vector<std::unique_ptr<Kernel>> open_scripts(const AdapterFamily& family, const std::vector<std::string>& ids,
                                                  const KernelOptions& options) {
  std::string reasons;
  for (const char* const program : family.programs) {
    try {
      std::vector<std::unique_ptr<Worker>> workers;
      for (const auto& id : ids) {
        workers.push_back(script_worker(family, id, program, options));
        workers.back()->launch();
      }
      std::vector<std::unique_ptr<Kernel>> kernels;
      for (auto& worker : workers) {
        const std::string json = worker->first_manifest();
        kernels.push_back(kernel_of(std::move(worker), json, Outside::program));
      }
      return kernels;
    } catch (const KernelLoadError& error) {
      const std::string_view text = error.what();
      const bool not_started = text.starts_with(program) || text.find("cannot be started") != std::string_view::npos;
      if (!not_started && text.find(family.absent) == std::string_view::npos) throw;
      reasons += fmt::format("{}{}", reasons.empty() ? "" : "; ", text);
    }
  }
  throw KernelLoadError(fmt::format("{}; {}", reasons, family.remedy));
}

/// "core:mpfr, core:mpfi and core:arb".
std::string of_any_precision(const std::vector<KernelEntry>& known) {
  std::vector<std::string_view> ids;
  for (const KernelEntry& entry : known)
    if (entry.any_digits) ids.push_back(entry.id);
  return fmt::format("{}", fmt::join(ids, ", "));
}

/// On a wider scalar of fixed digits: says so, because more were given than were asked for.
class NextWidth final : public ForwardingKernel {
 public:
  using ForwardingKernel::ForwardingKernel;
  [[nodiscard]] std::unique_ptr<Kernel> clone() const override { return std::make_unique<NextWidth>(inner().clone()); }
  [[nodiscard]] std::vector<std::string> notes() const override {
    return {fmt::format("computes with {} decimal digits, the next width there is", digits())};
  }
};

/// What "NAME@PRECISION" names. Throws UsageError where that name has no such precision, or is none.
std::unique_ptr<Kernel> precise_kernel(std::string_view spec, const std::vector<KernelEntry>& known) {
  const PreciseName asked = precise_name(spec);
  std::vector<std::string> ids;
  ids.reserve(known.size());
  for (const KernelEntry& entry : known) ids.push_back(entry.id);
  const std::optional<std::string> meant = meant_name(asked, ids);
  if (!meant) {
    if (const std::vector<unsigned> widths = widths_of(asked.name, ids); !widths.empty())
      throw UsageError(fmt::format("--kernel is {}: {} has up to {} digits; with any precision there are {}",
                                   in_quotes(spec), asked.name, std::ranges::max(widths), of_any_precision(known)));
    throw UsageError(
        fmt::format("--kernel is {}, which is no kernel{}", in_quotes(spec), suggestion(asked.name, ids, 0)));
  }
  const KernelEntry& entry = *std::ranges::find(known, *meant, &KernelEntry::id);
  if (entry.any_digits) return entry.make_as(std::string(spec), *asked.digits);
  if (entry.id != asked.name) {
    std::unique_ptr<Kernel> kernel = entry.make_as(std::string(spec), entry.digits);
    if (entry.digits == *asked.digits) return kernel;
    return std::make_unique<NextWidth>(std::move(kernel));
  }
  const std::string fixed = entry.bits > 0     ? fmt::format("has {} bits", entry.bits)
                            : entry.digits > 0 ? fmt::format("has {} decimal digits", entry.digits)
                                               : "has no precision to choose";
  throw UsageError(fmt::format("--kernel is {}: {} {}; with any precision there are {}", in_quotes(spec), asked.name,
                               fixed, of_any_precision(known)));
}

void refuse_in_process(std::string_view spec, const KernelOptions& options) {
  if (!options.in_process) return;
  throw UsageError(fmt::format(
      "--in-process loads a shared library into attest itself; {} is a program of its own: leave --in-process out",
      in_quotes(spec)));
}

constexpr std::string_view exec = "exec:";

std::unique_ptr<Kernel> open_program(const std::string& id, std::string_view command, const KernelOptions& options) {
  if (command.find_first_not_of(" \t\n") == std::string_view::npos) {
    throw UsageError("--kernel is \"exec:\" without a command; write exec:COMMAND, as in 'exec:python3 adapter.py'");
  }
  refuse_in_process(id, options);
  return open_worker(id, process::exec_starter(std::string(command), options), options, Outside::program);
}

std::unique_ptr<Kernel> open_library(const std::string& id, std::string_view file, const KernelOptions& options) {
  // dlopen searches the system's folders for a name without a slash; a file of the user's is meant.
  const std::filesystem::path path =
      file.find('/') == std::string_view::npos ? "./" + std::string(file) : std::string(file);
  if (const std::string why = process::why_unloadable(path); !why.empty()) {
    throw KernelLoadError(fmt::format("{}: {}", id, why));
  }
  if (options.in_process) return with_lse_of_contract(process::library_in_process(id, path));
  return open_worker(id, process::library_starter(path, options), options, Outside::library);
}

/// `spec` is a path or exec:COMMAND.
std::unique_ptr<Kernel> open_outside(const std::string& id, std::string_view spec, const KernelOptions& options) {
  if (spec.starts_with(exec)) return open_program(id, spec.substr(exec.size()), options);
  return open_library(id, spec, options);
}

}  // namespace

void add_kernel_family(Family family) {
  if (std::ranges::find(families(), family) == families().end()) families().push_back(family);
}

void add_outside_names(OutsideFamily family) {
  if (std::ranges::find(outside_families(), family) == outside_families().end()) outside_families().push_back(family);
}

std::vector<std::string> known_kernels() {
  std::vector<std::string> names;
  for (const auto& entry : entries()) names.push_back(entry.id);
  for (const OutsideName& name : outside_names()) names.push_back(name.id);
  for (const AdapterFamily& family : adapter_families()) {
    for (const AdapterKernel& kernel : family.kernels) names.emplace_back(kernel.id);
  }
  return names;
}

std::vector<std::unique_ptr<Kernel>> open_kernels(std::string_view spec, const KernelOptions& options) {
  std::vector<std::unique_ptr<Kernel>> kernels;
  if (spec.starts_with(exec)) {
    kernels.push_back(open_outside(std::string(spec), spec, options));
    return kernels;
  }

  auto known = entries();
  const bool is_path = spec.find('/') != std::string_view::npos || spec.ends_with(".so");
  if (!is_path && spec.find('@') != std::string_view::npos) {
    kernels.push_back(precise_kernel(spec, known));
    return kernels;
  }
  std::erase_if(known, [&](const KernelEntry& entry) { return !glob_match(spec, entry.id); });
  std::sort(known.begin(), known.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  for (const auto& entry : known) kernels.push_back(entry.make());
  for (const AdapterFamily& family : adapter_families()) {
    std::vector<std::string> ids;
    for (const AdapterKernel& kernel : family.kernels) {
      if (glob_match(spec, kernel.id)) ids.emplace_back(kernel.id);
    }
    if (ids.empty()) continue;
    refuse_in_process(spec, options);
    std::ranges::move(open_scripts(family, ids, options), std::back_inserter(kernels));
  }
  for (const OutsideName& name : outside_names(spec)) kernels.push_back(open_outside(name.id, name.outside, options));
  if (!kernels.empty()) return kernels;

  if (const std::string command = command_meant(spec); !command.empty())
    throw UsageError(fmt::format("--kernel is {}, which is no kernel; did you mean '{}'?", in_quotes(spec), command));
  if (!is_path) {
    const std::string nearest = suggestion(spec, known_kernels());
    throw UsageError(fmt::format("--kernel is {}, which is no kernel{}", in_quotes(spec),
                                 !nearest.empty() ? nearest
                                                  : "; a shared library's path contains a '/' or ends in .so, and a "
                                                    "program is written exec:COMMAND"));
  }
  kernels.push_back(open_outside(std::string(spec), spec, options));
  return kernels;
}

}  // namespace attest
