#include "properties/diagnosis/readings/narrowing.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "properties/diagnosis/readings/reading.h"

namespace attest {
namespace {

/// "16", "16 or 32", "16, 32 or 64".
std::string either(const std::vector<std::string>& sizes) {
  std::string text;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : i + 1 == sizes.size() ? " or " : ", ", sizes[i]);
  return text;
}

}  // namespace

bool Narrowing::still_fits(const std::string& words, std::int64_t size) const {
  return !found_ || find(words, size) != found_->end();
}

void Narrowing::add(const std::vector<Read>& readings, bool far, bool counts) {
  std::vector<Fitting> fitting;
  for (const Read& one : readings) {
    if (!still_fits(one.words, one.size)) continue;
    Fitting fits{.words = one.words, .size = one.size};
    if (found_) fits = *find(one.words, one.size);
    // A case of which the other problem says nothing, as it hides all keys, say, speaks neither for it nor against.
    if (one.outcome != Outcome::held && one.outcome != Outcome::excused) continue;
    if (one.outcome == Outcome::held && counts) ++fits.right, fits.far += far ? 1 : 0;
    fits.problems.push_back(one.problem);
    fitting.push_back(std::move(fits));
  }
  found_ = std::move(fitting);
  cases_ += counts ? 1 : 0;
}

std::vector<std::string> Narrowing::words() {
  if (!found_) return {};
  std::erase_if(*found_, [&](const Fitting& one) {
    // A row of zeros may be one that sees no key.
    const std::size_t enough = one.words == zero_values ? 4 : std::min<std::size_t>(cases_, 2);
    return one.right < enough || 2 * one.far < one.right;
  });
  return told(*found_);
}

/// Each once; one that fits with several sizes with all of them, where they are the same problems. Where they are not,
/// at most one of them can be what the kernel does: then the bounds tell none of them from the others, and a reading
/// that cannot be told from a wrong one is none.
std::vector<std::string> Narrowing::told(const std::vector<Fitting>& fitting) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < fitting.size(); ++i) {
    const Fitting& one = fitting[i];
    const auto alike = [&](const Fitting& other) { return other.words == one.words; };
    if (std::any_of(fitting.begin(), fitting.begin() + static_cast<std::ptrdiff_t>(i), alike)) continue;
    std::vector<std::string> sizes;
    bool same = true;
    for (const Fitting& other : fitting) {
      if (!alike(other)) continue;
      sizes.push_back(std::to_string(other.size));
      same = same && other.problems == one.problems;
    }
    if (!same) continue;
    std::string words = one.words;
    if (const std::size_t at = words.find('#'); at != std::string::npos) words.replace(at, 1, either(sizes));
    all.push_back(std::move(words));
  }
  return all;
}

std::vector<Narrowing::Fitting>::const_iterator Narrowing::find(const std::string& words, std::int64_t size) const {
  return std::ranges::find_if(*found_, [&](const Fitting& old) { return old.words == words && old.size == size; });
}

}  // namespace attest
