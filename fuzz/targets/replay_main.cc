// A fuzz target as a plain program: runs it on files, and on every file of folders, once each. No engine is needed, so
// a saved input is a test. Exit status 0 when nothing ended the program, 2 when there was nothing to run.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "core/support/errors.h"
#include "core/support/files.h"
#include "fuzz/targets/target.h"

namespace {

std::vector<std::filesystem::path> files_of(int argc, char** argv) {
  std::vector<std::filesystem::path> files;
  for (int i = 1; i < argc; ++i) {
    if (!std::filesystem::is_directory(argv[i])) {
      files.emplace_back(argv[i]);
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(argv[i]))
      if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::vector<std::filesystem::path> files = files_of(argc, argv);
    for (const std::filesystem::path& file : files) {
      const std::string bytes = attest::read_file(file);
      std::fprintf(stderr, "%s\n", file.c_str());
      LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    }
    std::fprintf(stderr, "%zu inputs\n", files.size());
    return files.empty() ? 2 : 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
