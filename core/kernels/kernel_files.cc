#include "core/kernels/kernel_files.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>

#include "core/isolation/adapters.h"
#include "core/support/names.h"
#include "core/support/sha256.h"

namespace attest {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t most_bytes = std::uint64_t{1} << 30U;

bool is_regular(const fs::path& file) {
  struct stat status{};
  return ::stat(file.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

std::string hash_of(const fs::path& file) {
  constexpr const char* unreadable = "unreadable";
  std::error_code error;
  const std::uintmax_t size = fs::file_size(file, error);
  std::ifstream in(file, std::ios::binary);
  if (error || !in) return unreadable;
  Sha256 sha;
  if (size > most_bytes) {
    const std::string text = fmt::format("{} bytes, of which the first GiB follows\n", size);
    sha.add(std::as_bytes(std::span(text)));
  }
  std::vector<char> part(std::size_t{1} << 16U);
  for (std::uint64_t left = most_bytes; left > 0 && in;) {
    in.read(part.data(), static_cast<std::streamsize>(std::min<std::uint64_t>(left, part.size())));
    const auto got = static_cast<std::size_t>(in.gcount());
    sha.add(std::as_bytes(std::span(part).first(got)));
    left -= got;
  }
  return in.bad() ? unreadable : sha.hex();
}

/// The file that a shell would run.
std::optional<fs::path> on_path(const std::string& program) {
  const char* const path = std::getenv("PATH");
  std::string_view folders = path != nullptr ? path : "/bin:/usr/bin";
  while (true) {
    const std::size_t end = std::min(folders.find(':'), folders.size());
    fs::path file = fs::path(end == 0 ? "." : folders.substr(0, end)) / program;
    if (is_regular(file) && ::access(file.c_str(), X_OK) == 0) return file;
    if (end == folders.size()) return std::nullopt;
    folders.remove_prefix(end + 1);
  }
}

FileHashes files_of_command(std::string_view line) {
  FileHashes files;
  for (const CommandWord& word : command_words(line)) {
    const bool has_slash = word.text.find('/') != std::string::npos;
    std::optional<fs::path> file;
    if (word.program && !has_slash) {
      file = on_path(word.text);
    } else if (is_regular(word.text)) {
      file = word.text;
    }
    if (file) files[word.text].insert(hash_of(*file));
  }
  return files;
}

/// The scripts beside the one that is started, and those that all of a language share.
FileHashes files_of_family(const AdapterFamily& family) {
  FileHashes files;
  const fs::path folder = adapters_folder();
  const fs::path script(family.script);
  const fs::path shared = script.extension() == ".py" ? "python/attest_adapter.py" : "node/attest_adapter.js";
  if (is_regular(folder / shared)) files[shared.string()].insert(hash_of(folder / shared));
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder / script.parent_path(), error)) {
    if (entry.path().extension() != script.extension() || !is_regular(entry.path())) continue;
    files[(script.parent_path() / entry.path().filename()).string()].insert(hash_of(entry.path()));
  }
  return files;
}

}  // namespace

std::vector<CommandWord> command_words(std::string_view line) {
  std::vector<CommandWord> words;
  bool begins = true, redirected = false, open = false;
  CommandWord word;
  const auto end_word = [&] {
    if (!open) return;
    const bool assigns =
        begins && word.text.find('=') != std::string::npos && word.text.find('=') < word.text.find('/');
    word.program = begins && !assigns;
    if (!redirected && !assigns) words.push_back(word);
    if (!redirected && !assigns) begins = false;
    redirected = open = false;
    word = {};
  };
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '\'' || c == '"') {
      open = true;
      const std::size_t end = std::min(line.find(c, i + 1), line.size());
      word.text += line.substr(i + 1, end - i - 1);
      i = end;
    } else if (c == '\\' && i + 1 < line.size()) {
      open = true;
      word.text += line[++i];
    } else if (c == '&' && redirected && !open) {
      // Of >&2, whose number is the target.
    } else if (c == ' ' || c == '\t' || c == '\n') {
      end_word();
      begins = begins || c == '\n';
    } else if (c == ';' || c == '&' || c == '|' || c == '(' || c == ')') {
      end_word();
      begins = true;
    } else if (c == '<' || c == '>') {
      // The number in front of it is a descriptor's.
      if (open && word.text.find_first_not_of("0123456789") == std::string::npos) {
        word = {};
        open = false;
      }
      end_word();
      redirected = true;
    } else {
      open = true;
      word.text += c;
    }
  }
  end_word();
  return words;
}

bool is_from_outside(std::string_view id) {
  return id.starts_with("exec:") || id.find('/') != std::string_view::npos || id.ends_with(".so");
}

std::string command_meant(std::string_view spec) {
  struct Language {
    std::string_view extension, program;
  };
  static constexpr Language languages[] = {{".py", "python3 "}, {".js", "node "},  {".mjs", "node "}, {".cjs", "node "},
                                           {".sh", "sh "},      {".jl", "julia "}, {".rb", "ruby "},  {".pl", "perl "},
                                           {".lua", "lua "},    {".R", "Rscript "}};
  const fs::path file(spec);
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./+=:@%,~";
  const bool one_word = spec.find_first_not_of(plain) == std::string_view::npos;
  if (!one_word && !is_regular(file)) {
    const std::vector<CommandWord> words = command_words(spec);
    const auto can_run = [](const std::string& program) {
      return program.find('/') == std::string::npos ? on_path(program).has_value()
                                                    : ::access(program.c_str(), X_OK) == 0;
    };
    if (words.size() > 1 && words.front().program && can_run(words.front().text)) return fmt::format("exec:{}", spec);
  }
  const std::string_view word = one_word ? spec : "FILE";
  for (const Language& language : languages)
    if (file.extension() == language.extension) return fmt::format("exec:{}{}", language.program, word);
  if (!is_regular(file) || ::access(file.c_str(), X_OK) != 0) return {};
  std::string start(2, ' ');
  std::ifstream(file, std::ios::binary).read(start.data(), 2);
  if (start != "#!") return {};
  return fmt::format("exec:{}{}", spec.find('/') == std::string_view::npos ? "./" : "", word);
}

FileHashes kernel_files(std::string_view id) {
  constexpr std::string_view exec = "exec:";
  if (id.starts_with(exec)) return files_of_command(id.substr(exec.size()));
  for (const AdapterFamily& family : adapter_families()) {
    if (std::ranges::find(family.kernels, id, &AdapterKernel::id) != family.kernels.end())
      return files_of_family(family);
  }
  if (!is_from_outside(id) || !is_regular(fs::path(id))) return {};
  return {{std::string(id), {hash_of(fs::path(id))}}};
}

}  // namespace attest
