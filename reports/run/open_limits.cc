#include "reports/run/open_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

#include "properties/diagnosis/find_limits.h"
#include "properties/road/watched_kernel.h"
#include "reports/run/interrupt.h"
#include "reports/run/own_families.h"
#include "reports/text/text.h"

namespace attest {
namespace {

std::unique_ptr<Kernel> under(std::unique_ptr<Kernel> kernel, Manifest manifest) {
  return manifest == kernel->manifest() ? std::move(kernel) : limited_kernel(std::move(kernel), std::move(manifest));
}

}  // namespace

std::unique_ptr<Kernel> within_open_limits(std::unique_ptr<Kernel> kernel, const Journal& earlier,
                                           std::vector<MetaRecord>& notes) {
  if (is_own(kernel->id()) || is_own_adapter(kernel->id())) return kernel;
  const auto same = [&](const KernelRecord& record) { return record.id == kernel->id() && !record.manifest.empty(); };
  const auto before = std::ranges::find_if(earlier.kernels, same);
  if (before != earlier.kernels.end()) {
    const Manifest declared = kernel->manifest();
    return under(std::move(kernel), with_limits_of(declared, parse_manifest(before->manifest, "the journal")));
  }
  // In a process of its own: a kernel that keeps something between calls comes to the run as it was loaded.
  const std::unique_ptr<Kernel> clone = kernel->clone();
  WatchedKernel watched(*clone, interrupt_requested);
  FoundLimits found = find_limits(watched);
  const auto say = [&](const std::string& words) {
    const std::string text = cut_short(one_line(words), 600);
    fmt::print(stderr, "preflight of {}: {}\n", one_line(kernel->id()), text);
    notes.push_back({"note", {{"kernel", kernel->id()}, {"text", text}}});
  };
  for (const FoundLimit& limit : found.limits)
    say(fmt::format("{}; taken for {}, which its manifest may state", limit.words, limit.key));
  if (!found.unexplained.empty()) say(found.unexplained);
  return under(std::move(kernel), std::move(found.manifest));
}

}  // namespace attest
