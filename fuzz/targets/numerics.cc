#include "fuzz/targets/numerics.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <sstream>
#include <utility>

#include "core/kernels/kernel_families.h"
#include "core/support/fnv1a.h"
#include "fuzz/archive.h"
#include "fuzz/level.h"
#include "properties/faults/faults.h"

namespace attest {
namespace {

constexpr std::size_t number_bytes = 8;

std::uint64_t number_of(std::span<const std::uint8_t> bytes) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < std::min(number_bytes, bytes.size()); ++i) number |= std::uint64_t{bytes[i]} << (8 * i);
  return number;
}

std::vector<std::uint8_t> with_number(std::uint64_t number, std::span<const std::uint8_t> input) {
  std::vector<std::uint8_t> bytes;
  bytes.reserve(number_bytes + input.size());
  for (std::size_t i = 0; i < number_bytes; ++i) bytes.push_back(static_cast<std::uint8_t>(number >> (8 * i)));
  bytes.insert(bytes.end(), input.begin(), input.end());
  return bytes;
}

std::span<const std::uint8_t> input_in(std::span<const std::uint8_t> bytes) {
  return bytes.subspan(std::min(number_bytes, bytes.size()));
}

std::uint64_t hash_of(const Numerics::Choice& choice) {
  std::uint64_t hash = fnv1a_start;
  for (const std::string_view word :
       {choice.property->name, std::string_view(choice.kernel->id()), std::string_view(name_of(choice.dtype))}) {
    for (const char c : word) hash = fnv1a(hash, static_cast<unsigned char>(c));
    hash = fnv1a(hash, 0xff);
  }
  // So that hashes lie evenly, whatever the last word is.
  return Stream(hash).next();
}

Input parsed(const Numerics::Choice& choice, std::span<const std::uint8_t> bytes) {
  return parse_input(input_in(bytes), choice.dtype, choice.property->operation);
}

Target target_of(const Numerics::Choice& choice) {
  return {choice.property, choice.dtype};
}

std::vector<std::string> words_of(std::string_view text) {
  std::istringstream words{std::string(text)};
  return {std::istream_iterator<std::string>(words), {}};
}

bool too_large(const Case& c, bool wide) {
  const std::int64_t most = wide ? most_wide_numerics : most_numerics;
  std::int64_t elements = 0;
  for (const Tensor& tensor : c.tensors) elements += tensor.elements();
  return elements > most || work_of(c) > most;
}

}  // namespace

std::vector<std::unique_ptr<Kernel>> kernels_matching(std::string_view patterns) {
  add_kernel_family(fault_kernels);
  add_kernel_family(control_kernels);
  std::vector<std::unique_ptr<Kernel>> kernels;
  for (const std::string& pattern : words_of(patterns))
    std::ranges::move(open_kernels(pattern, {}), std::back_inserter(kernels));
  return kernels;
}

Numerics::Numerics(std::string_view properties, std::vector<std::unique_ptr<Kernel>> kernels)
    : kernels_(std::move(kernels)) {
  for (const std::string& pattern : words_of(properties)) {
    for (const Property* const property : properties_matching(pattern)) {
      if (property->is_statistical()) continue;
      for (const std::unique_ptr<Kernel>& kernel : kernels_) {
        if (!property->misses_of(kernel->manifest()).empty()) continue;
        for (const DType dtype : kernel->manifest().dtypes) {
          const Choice choice{property, kernel.get(), dtype};
          choices_.emplace(hash_of(choice), choice);
        }
      }
    }
  }
  if (choices_.empty()) throw UsageError(fmt::format("no kernel has what {} is about", properties));
}

const Numerics::Choice& Numerics::chosen(std::span<const std::uint8_t> bytes) const {
  const auto at = choices_.lower_bound(number_of(bytes));
  return at == choices_.end() ? choices_.begin()->second : at->second;
}

std::optional<Numerics::Result> Numerics::run(std::span<const std::uint8_t> bytes) const {
  const Choice& choice = chosen(bytes);
  const auto& [property, kernel, dtype] = choice;
  Case drawn = case_of(parsed(choice, bytes), *property);
  if (too_large(drawn, kernel->is_wide())) return std::nullopt;
  WatchedKernel watched(*kernel);
  Walked walked = walk({}, *property, watched, [&] { return std::move(drawn); });
  show_level(static_cast<std::size_t>(hash_of(choice)), quality_of(*property, walked.problem, walked.verdict));
  return Result{std::move(walked.problem), std::move(walked.verdict), choice};
}

std::vector<std::uint8_t> Numerics::fresh(std::uint64_t number, Stream& stream) const {
  const std::vector<std::uint8_t> bytes = with_number(number, {});
  return with_number(number, bytes_of(fresh_input(target_of(chosen(bytes)), stream)));
}

std::vector<std::uint8_t> Numerics::mutated(std::span<const std::uint8_t> bytes, std::uint64_t seed) const {
  Stream stream(seed);
  // Most cases are worth another kernel, dtype or law.
  const std::uint64_t any =
      std::next(choices_.begin(), stream.below(static_cast<std::int64_t>(choices_.size())))->first;
  if (bytes.size() <= number_bytes || stream.one_in(8)) return fresh(any, stream);
  if (stream.one_in(8)) return with_number(any, input_in(bytes));
  const Choice& choice = chosen(bytes);
  return with_number(number_of(bytes), bytes_of(attest::mutated(parsed(choice, bytes), target_of(choice), stream)));
}

std::vector<std::uint8_t> Numerics::crossed(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b,
                                            std::uint64_t seed) const {
  Stream stream(seed);
  const Choice& choice = chosen(a);
  return with_number(number_of(a), bytes_of(attest::crossed(parsed(choice, a), parsed(choice, b), stream)));
}

std::string finding_of(const Numerics::Result& result, const std::filesystem::path& folder) {
  const auto& [c, verdict, choice] = result;
  const bool violated = verdict.outcome == Outcome::violated;
  if (!violated && verdict.outcome != Outcome::inconclusive) return {};
  Case saved = c;
  saved.provenance.property = choice.property->name;
  saved.provenance.dtype = name_of(choice.dtype);
  saved.provenance.kernel = choice.kernel->id();
  saved.provenance.expected = name_of(verdict.outcome);
  std::string kernel = choice.kernel->id();
  std::ranges::replace(kernel, ':', '-');
  const std::filesystem::path file =
      folder / fmt::format("{}--{}--{}.safetensors", choice.property->name, kernel, name_of(choice.dtype));
  std::string replay = "attest replay " + file.string();
  try {
    save_case(saved, file);
  } catch (const UsageError& error) {
    replay = fmt::format("its case is not saved: {}", error.what());
  }
  return fmt::format("{} {} {} in {}: {}; {}", choice.kernel->id(), violated ? "violates" : "is not decided on",
                     choice.property->name, name_of(choice.dtype), verdict.reason, replay);
}

}  // namespace attest
