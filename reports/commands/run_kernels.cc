#include "reports/commands/run_kernels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/support/errors.h"
#include "core/support/names.h"
#include "core/support/source_place.h"
#include "properties/road/watched_kernel.h"
#include "reports/run/interrupt.h"
#include "reports/run/open_limits.h"
#include "reports/run/resumed.h"
#include "reports/run/waiting.h"
#include "reports/run_folder/changed_kernel.h"

namespace attest {
namespace {

/// Where no --kernel is given.
constexpr const char* default_kernels[] = {"builtin:*", "core:double", "core:float", "core:cpp_bin_float_50",
                                           "core:mpfr"};

void add_kernels(RunKernels& run, std::vector<std::unique_ptr<Kernel>> kernels, const Journal& earlier) {
  for (std::unique_ptr<Kernel>& kernel : kernels) {
    const auto same = [&](const std::unique_ptr<Kernel>& other) { return other->id() == kernel->id(); };
    if (std::ranges::any_of(run.kernels, same)) continue;
    kernel = within_open_limits(std::move(kernel), earlier, run.notes);
    run.records.push_back(record_of(*kernel));
    run.kernels.push_back(std::move(kernel));
  }
}

void open_chosen(RunKernels& run, const std::vector<std::string>& specs, const KernelOptions& how,
                 const Journal& earlier) {
  for (const std::string& spec : specs) {
    std::vector<std::unique_ptr<Kernel>> kernels = open_kernels(spec, how);
    Asked asked{"--kernel", spec, {}};
    for (const std::unique_ptr<Kernel>& kernel : kernels) asked.answers.insert(kernel->id());
    run.asked.insert(std::move(asked));
    add_kernels(run, std::move(kernels), earlier);
  }
  if (!specs.empty()) return;
  for (const char* const spec : default_kernels) add_kernels(run, open_kernels(spec, how), earlier);
  try {
    add_kernels(run, open_kernels("pytorch:*", how), earlier);
  } catch (const KernelLoadError& error) {
    run.records.push_back({"pytorch:*", "", error.what()});
  }
}

void refuse_changed_kernels(const Journal& earlier, const RunKernels& run) {
  for (const KernelRecord& kernel : run.records) {
    for (const KernelRecord& before : earlier.kernels) {
      if (before.id != kernel.id || before.manifest.empty() || before.manifest == kernel.manifest) continue;
      throw UsageError(fmt::format("kernel {} has another manifest than when the {} began; start a new {}", kernel.id,
                                   earlier.run->fuzz ? "campaign" : "run", earlier.run->fuzz ? "one" : "run"));
    }
  }
}

/// What is to be said of a kernel that could not be loaded for a run that has just begun in `folder`: the error, and
/// where what the kernels wrote to standard error is, if they did.
KernelLoadError with_logs(const KernelLoadError& error, const RunFolder& folder) {
  const std::vector<std::filesystem::path> logs =
      folder.resumes() ? std::vector<std::filesystem::path>() : folder.kept_logs();
  if (logs.empty()) return error;
  std::vector<std::string> names;
  names.reserve(logs.size());
  for (const std::filesystem::path& log : logs) names.push_back(log.string());
  return KernelLoadError(fmt::format("{}; all that was written there is in {}", error.what(), fmt::join(names, ", ")));
}

std::string read_source(std::string_view option, const std::string& text) {
  if (!source_place(text)) throw UsageError(fmt::format("{} is {}; {}", option, in_quotes(text), source_rule));
  return text;
}

}  // namespace

void RunOptions::declare_ci_files(OptionList& list) {
  ci_files.declare(list);
  list.option("--source", source, Value<std::string>{"FILE[:LINE]", read_source, files},
              "where the kernel's source stands in its repository: code scanning shows the alerts of --sarif there");
}

KernelRecord record_of(const Kernel& kernel) {
  return {kernel.id(), nlohmann::ordered_json::parse(to_json(kernel.manifest())).dump(), ""};
}

RunKernels open_run_kernels(const RunOptions& options, const RunFolder& folder, const Journal& earlier,
                            const std::function<void(RunKernels&)>& require) {
  RunKernels run;
  try {
    // The run's folder may be theirs.
    options.ci_files.refuse_homeless();
    KernelOptions how = options.process.options();
    how.log_folder = folder.logs();
    const Waiting waiting(options.quiet);
    open_chosen(run, options.kernels, how, earlier);
    if (!options.against.empty()) run.other = std::make_shared<OtherKernel>(open_other_kernel(options.against, how));
    if (interrupt_requested()) throw Abandoned();
    refuse_changed_kernels(earlier, run);
    add_files(run.records, options.against);
    for (MetaRecord& note :
         refuse_changed_files(earlier, run.records, options.place.accept_changed_kernel, folder.path().string()))
      run.notes.push_back(std::move(note));
    require(run);
  } catch (const KernelLoadError& error) {
    folder.discard_if_empty();
    if (interrupt_requested()) throw Abandoned();
    throw with_logs(error, folder);
  } catch (...) {
    folder.discard_if_empty();
    if (interrupt_requested()) throw Abandoned();
    throw;
  }
  return run;
}

void begin_journal(JournalWriter& writer, const RunFolder& folder, const Journal& earlier, const RunRecord& run,
                   const MetaRecord& begin, const RunKernels& open) {
  folder.begin(writer, run);
  if (folder.resumes()) look_after_cases(folder, earlier);
  writer.append(begin);
  for (const KernelRecord& record : open.records) writer.append(record);
  for (const MetaRecord& note : open.notes) writer.append(note);
}

std::vector<MetaRecord> notes_on(std::span<const std::unique_ptr<Kernel>> kernels) {
  std::vector<MetaRecord> notes;
  for (const std::unique_ptr<Kernel>& kernel : kernels)
    for (const std::string& note : kernel->notes())
      notes.push_back({"note", {{"kernel", kernel->id()}, {"text", note}}});
  return notes;
}

}  // namespace attest
