#include "attest/files.h"
#include "commands.h"
#include "html.h"
#include "summary.h"

namespace attest {
namespace {

struct Merged {
  Journal journal;               ///< canonical, with the meta records of all parts
  std::filesystem::path folder;  ///< of the run, where there is just one
};

Merged merge(const Options& options) {
  std::vector<Journal> parts;
  std::vector<std::string> sources;
  for (const std::filesystem::path& input : options.inputs) {
    parts.push_back(read_journal(input));
    sources.push_back(input.string());
  }
  Merged merged{.journal = canonical(parts, sources), .folder = {}};
  for (Journal& part : parts) {
    drop_overtaken_explanations(part);
    merged.journal.meta.insert(merged.journal.meta.end(), part.meta.begin(), part.meta.end());
  }
  if (options.inputs.size() == 1) {
    const std::filesystem::path& input = options.inputs.front();
    merged.folder = std::filesystem::is_directory(input) ? input : input.parent_path();
    if (merged.folder.empty()) merged.folder = ".";
  }
  return merged;
}

}  // namespace

int merge_command(const Options& options) {
  write_file_atomically(options.output, to_text(merge(options).journal));
  return 0;
}

int report_command(const Options& options) {
  const Merged merged = merge(options);
  const Summary summary = summarise(merged.journal, merged.folder);
  write_file_atomically(options.output, html_page(summary, merged.journal, merged.folder.string()));
  return 0;
}

}  // namespace attest
