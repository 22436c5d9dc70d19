// weave TABLE SOURCE OUTPUT: the source with every mutant of it built in, to be chosen at run time.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <string_view>

#include "properties/test/catalogue/mutants.h"

namespace {

using attest::Mutant;

bool blank(char c) {
  return std::isspace(static_cast<unsigned char>(c)) != 0;
}

/// Where the pattern, found at `at`, ends; npos where it is not there. A run of blanks is like any other.
std::size_t matched(std::string_view text, std::size_t at, std::string_view pattern) {
  for (std::size_t p = 0; p < pattern.size();) {
    if (blank(pattern[p])) {
      if (at >= text.size() || !blank(text[at])) return std::string_view::npos;
      while (at < text.size() && blank(text[at])) ++at;
      while (p < pattern.size() && blank(pattern[p])) ++p;
    } else if (at < text.size() && text[at] == pattern[p]) {
      ++at, ++p;
    } else {
      return std::string_view::npos;
    }
  }
  return at;
}

struct Change {
  std::size_t begin, end;
  const Mutant* mutant;
};

Change place_of(const Mutant& m, std::string_view text) {
  const auto fail = [&](const std::string& why) { throw std::runtime_error(m.name() + ": " + why); };
  const std::size_t first = text.find(m.in);
  if (m.in.empty() || first == std::string_view::npos) fail(fmt::format("there is no \"{}\"", m.in));
  // A row of the catalogue, or a function.
  const std::size_t last = std::min(text.find(m.in.starts_with(".name") ? ".name" : "\n}", first + 1), text.size());
  constexpr std::string_view open = "«", close = "»";
  std::size_t left = m.was.find(open), right = m.was.find(close);
  std::string before, changed = m.was, after;
  if (left != std::string::npos) {
    before = m.was.substr(0, left);
    changed = m.was.substr(left + open.size(), right - left - open.size());
    after = m.was.substr(right + close.size());
  }
  Change found{0, 0, nullptr};
  for (std::size_t at = first; at < last; ++at) {
    const std::size_t begin = matched(text, at, before);
    const std::size_t end = begin == std::string_view::npos ? begin : matched(text, begin, changed);
    if (end == std::string_view::npos || matched(text, end, after) == std::string_view::npos) continue;
    if (found.mutant != nullptr) fail(fmt::format("\"{}\" stands there more than once", m.was));
    found = {begin, end, &m};
  }
  if (found.mutant == nullptr) fail(fmt::format("\"{}\" does not stand there", m.was));
  return found;
}

/// text[begin, end) with the changes within it, the outermost first.
std::string woven(std::string_view text, std::size_t begin, std::size_t end, std::vector<Change> changes) {
  std::string out;
  while (begin < end) {
    // The next one that begins, and of those the longest.
    const auto next = std::ranges::min_element(changes, {}, [](const Change& c) { return std::pair(c.begin, ~c.end); });
    if (next == changes.end()) break;
    const Change outer = *next;
    changes.erase(next);
    std::vector<Change> inner, rest;
    for (const Change& c : changes) {
      if (c.begin < outer.end && c.end > outer.end)
        throw std::runtime_error(outer.mutant->name() + " and " + c.mutant->name() + " overlap");
      (c.begin < outer.end ? inner : rest).push_back(c);
    }
    changes = rest;
    const std::string right = woven(text, outer.begin, outer.end, inner);
    const std::string chosen = fmt::format(R"_(::attest::chosen_mutant == R"({})")_", outer.mutant->name());
    out += text.substr(begin, outer.begin - begin);
    out += text[outer.end - 1] == ';' ? fmt::format("if ({}) {{ {} }} else {{ {} }}", chosen, outer.mutant->now, right)
                                      : fmt::format("({} ? ({}) : ({}))", chosen, outer.mutant->now, right);
    begin = outer.end;
  }
  return out += text.substr(begin, end - begin);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 4) throw std::runtime_error("usage: weave TABLE SOURCE OUTPUT");
    std::ifstream in(argv[2]);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    const std::vector<Mutant> mutants = attest::read_mutants(argv[1]);
    std::vector<Change> changes;
    for (const Mutant& m : mutants)
      if (std::string_view(argv[2]).ends_with("/" + m.file)) changes.push_back(place_of(m, text));
    const std::string out = "#include \"properties/test/catalogue/mutant.h\"\n" + woven(text, 0, text.size(), changes);
    std::ofstream(argv[3]) << out;
    return 0;
  } catch (const std::exception& e) {
    std::cerr << e.what() << "\n";
    return 1;
  }
}
