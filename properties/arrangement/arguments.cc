#include "properties/arrangement/arguments.h"

#include <charconv>
#include <optional>
#include <utility>

#include "core/support/fnv1a.h"
#include "properties/generators/stream.h"

namespace attest {
namespace {

std::uint64_t mixed(std::uint64_t hash, std::string_view text) {
  for (const char c : text) hash = fnv1a(hash, static_cast<unsigned char>(c));
  return hash;
}

/// What the provenance's arguments state of a name.
std::optional<std::int64_t> stated(const Case& c, std::string_view name) {
  std::string_view rest = c.provenance.arguments ? *c.provenance.arguments : std::string_view();
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    const std::string_view word = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (!word.starts_with(name) || !word.substr(name.size()).starts_with("=")) continue;
    const std::string_view digits = word.substr(name.size() + 1);
    std::int64_t value = 0;
    const auto [last, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error == std::errc() && last == digits.data() + digits.size() && value >= 0) return value;
  }
  return std::nullopt;
}

thread_local ArgumentsAsked* asked = nullptr;

void note(std::string_view name, std::int64_t extent) {
  if (asked != nullptr) asked->note(name, extent);
}

std::uint64_t seed_of(const Case& c, std::string_view name) {
  std::uint64_t hash = fnv1a_start;
  const Provenance& from = c.provenance;
  for (const Provenance::Word* const word : {&from.property, &from.seed, &from.k}) {
    hash = mixed(hash, word->value_or(""));
    hash = mixed(hash, "|");
  }
  return Stream(mixed(hash, name)).next();
}

}  // namespace

ArgumentsAsked::ArgumentsAsked() {
  asked = this;
}
ArgumentsAsked::~ArgumentsAsked() {
  asked = nullptr;
}
void ArgumentsAsked::note(std::string_view name, std::int64_t extent) {
  extents_[std::string(name)].insert(extent);
}
std::vector<std::string> ArgumentsAsked::names() const {
  std::vector<std::string> all;
  all.reserve(extents_.size());
  for (const auto& [name, extents] : extents_)
    all.push_back(extents.size() == 1 && *extents.begin() > 0 ? name + "/" + std::to_string(*extents.begin()) : name);
  return all;
}

std::uint64_t seed_argument(const Case& c, std::string_view name) {
  note(name, 0);
  return seed_of(c, name);
}

std::int64_t argument(const Case& c, std::string_view name, std::int64_t extent) {
  note(name, extent);
  if (const std::optional<std::int64_t> value = stated(c, name)) return *value % extent;
  return static_cast<std::int64_t>(seed_of(c, name) % static_cast<std::uint64_t>(extent));
}

Indices permutation_argument(const Case& c, std::string_view name, std::int64_t extent) {
  note(name, 0);
  Indices order = all_of(extent);
  Stream stream(seed_of(c, name));
  for (std::int64_t i = extent - 1; i > 0; --i)
    std::swap(order[static_cast<std::size_t>(i)], order[static_cast<std::size_t>(stream.below(i + 1))]);
  if (extent >= 2 && order == all_of(extent)) std::swap(order[0], order[1]);
  return order;
}

}  // namespace attest
