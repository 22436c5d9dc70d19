#include "reports/test/attack/foreign_folder.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <utility>

#include "core/journal/journal.h"
#include "reports/test/json.h"

namespace attest::attack {
namespace {

namespace fs = std::filesystem;

/// What commands read, write and delete in a run's folder.
std::vector<std::string> names_in(const fs::path& run) {
  std::vector<std::string> names{
      "run.jsonl",    "summary.json",     "summary.md", "report.html", "tolerances.json", "tolerances.csv",
      "audit.json",   "self-test.json",   "cases",      "logs",        "archive",         "cases/new.safetensors",
      "logs/new.log", "archive/new.jsonl"};
  std::error_code ignored;
  for (const auto& entry : fs::recursive_directory_iterator(run, ignored))
    names.push_back(entry.path().lexically_relative(run));
  return names;
}

std::string put_thing(const fs::path& place, const fs::path& outside, Dice& dice) {
  const std::array<std::pair<const char*, fs::path>, 8> targets{{{"a file", outside / "secret.txt"},
                                                                 {"a case", outside / "cases/mine.safetensors"},
                                                                 {"a folder", outside / "cases"},
                                                                 {"the folder above", outside},
                                                                 {"a file that is not there", outside / "not-there"},
                                                                 {"/dev/zero", "/dev/zero"},
                                                                 {"/proc/self/environ", "/proc/self/environ"},
                                                                 {"itself", place}}};
  switch (dice.below(12)) {
    case 0:
      ::mkfifo(place.c_str(), 0666);
      return "a pipe";
    case 1: {
      const int number = ::socket(AF_UNIX, SOCK_STREAM, 0);
      sockaddr_un address{};
      address.sun_family = AF_UNIX;
      std::strncpy(address.sun_path, place.c_str(), sizeof address.sun_path - 1);
      const bool bound = ::bind(number, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
      ::close(number);
      return bound ? "a socket" : "nothing, for a socket's path is short";
    }
    case 2:
      // Of the superuser alone.
      if (::mknod(place.c_str(), S_IFCHR | 0666, makedev(1, 5)) == 0) return "the device of zeros";
      ::mkfifo(place.c_str(), 0666);
      return "a pipe";
    case 3:
      fs::create_directories(place / "inner");
      return "a folder with a folder";
    default: {
      const auto& [what, target] = dice.one_of(targets);
      std::error_code ignored;
      fs::create_symlink(dice.one_in(2) ? target : target.lexically_relative(place.parent_path()), place, ignored);
      return fmt::format("a link to {}", what);
    }
  }
}

/// The journal's first kernel under another path, another name, or both, in all of its lines.
std::string with_kernel(Journal journal, const std::string& name, Dice& dice) {
  if (journal.kernels.empty()) return to_text(journal);
  KernelRecord& kernel = journal.kernels.front();
  if (dice.one_in(2)) {
    nlohmann::json manifest = parsed_json(kernel.manifest);
    manifest["name"] = name;
    kernel.manifest = manifest.dump();
    if (dice.one_in(2)) return to_text(journal);
  }
  const std::string before = std::exchange(kernel.id, name);
  for (BatchRecord& batch : journal.batches)
    if (batch.subject.kernel == before) batch.subject.kernel = name;
  for (FindingRecord& finding : journal.findings)
    if (finding.subject.kernel == before) finding.subject.kernel = name;
  return to_text(journal);
}

}  // namespace

std::string make_foreign(const fs::path& run, const fs::path& outside, Dice& dice) {
  std::string did;
  for (std::size_t left = 1 + dice.below(3); left > 0; --left) {
    const std::vector<std::string> names = names_in(run);
    const std::string name = dice.one_of(names);
    std::error_code ignored;
    // Through no link of an earlier round.
    if (fs::is_symlink(run / fs::path(name).parent_path(), ignored)) continue;
    fs::create_directories((run / name).parent_path(), ignored);
    fs::remove_all(run / name, ignored);
    did += fmt::format("{} is {}\n", name, put_thing(run / name, outside, dice));
  }
  return did;
}

std::string with_traversal(const std::string& journal, const fs::path& outside, Dice& dice) {
  Journal changed = parse_journal(journal, "the run");
  const std::array<std::string, 9> names{"../../outside/secret.txt",
                                         (outside / "secret.txt").string(),
                                         "../outside/new.safetensors",
                                         "cases/../../outside/cases/mine.safetensors",
                                         "/dev/zero",
                                         "/proc/self/environ",
                                         "cases/.hidden.safetensors",
                                         "cases/a/b.safetensors",
                                         std::string("cases/a\0b.safetensors", 21)};
  const std::string& name = dice.one_of(names);
  // A kernel's path and name may lead anywhere: they are no file of the folder.
  if (dice.one_in(3)) return with_kernel(std::move(changed), name, dice);
  if (!changed.findings.empty() && dice.one_in(2))
    changed.findings[dice.below(changed.findings.size())].case_file = name;
  else if (!changed.batches.empty())
    changed.batches[dice.below(changed.batches.size())].subject.property = name;
  if (dice.one_in(4)) changed.run->case_files = {name};
  return to_text(changed);
}

}  // namespace attest::attack
