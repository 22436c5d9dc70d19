#include "properties/test/catalogue/mutants.h"

#include <fstream>
#include <stdexcept>

namespace attest {

std::vector<Mutant> read_mutants(const std::filesystem::path& table) {
  std::vector<Mutant> all;
  std::ifstream in(table);
  std::string line, file;
  for (int number = 1; std::getline(in, line); ++number) {
    const auto fail = [&](const char* why) {
      throw std::runtime_error(table.string() + ":" + std::to_string(number) + ": " + why);
    };
    if (line.empty() || line.starts_with('#')) continue;
    if (line.starts_with("file ")) {
      file = line.substr(5);
    } else if (!line.starts_with(' ')) {
      const std::size_t colon = line.find(": ");
      if (colon == std::string::npos) fail("ROW: CHANGE is expected");
      all.push_back({.file = file, .row = line.substr(0, colon), .change = line.substr(colon + 2)});
    } else {
      if (all.empty()) fail("a mutant begins with ROW: CHANGE");
      const std::string text = line.substr(std::min<std::size_t>(line.size(), 6));
      std::string* const part = line.starts_with("  in  ")   ? &all.back().in
                                : line.starts_with("  was ") ? &all.back().was
                                : line.starts_with("  now")  ? &all.back().now
                                                             : nullptr;
      if (part == nullptr) fail("in, was or now is expected");
      *part += (part->empty() ? "" : "\n") + text;
    }
  }
  if (all.empty()) throw std::runtime_error(table.string() + " has no mutants");
  return all;
}

}  // namespace attest
