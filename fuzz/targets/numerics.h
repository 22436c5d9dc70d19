// What the fuzz targets of the catalogue share: any bytes are a property, a kernel, a dtype and a case, on which a
// right kernel holds.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/kernel/kernel_under_test.h"
#include "fuzz/input.h"
#include "fuzz/mutate.h"

namespace attest {

/// The kernels that the patterns name, which a space separates: "builtin:* core:double". Planted faults and controls
/// are known too. Throws UsageError for a pattern that names none.
[[nodiscard]] std::vector<std::unique_ptr<Kernel>> kernels_matching(std::string_view patterns);

/// A case is not run whose work (work_of) or elements of all tensors are more: on a kernel that computes in a dtype,
/// and on a wide one. So no input takes long, under a sanitizer either.
inline constexpr std::int64_t most_numerics = std::int64_t{1} << 16, most_wide_numerics = std::int64_t{1} << 11;

/// A fuzz target: all of its properties on all of its kernels, in each of their dtypes. The first eight bytes are a
/// number, which chooses among these; the rest is an input (input.h). One thread at a time.
class Numerics {
 public:
  /// The properties that the patterns name, which a space separates ("self.* weights.*"), but for statistical ones: an
  /// engine would find the draw that fails. Throws UsageError where there is nothing to run.
  Numerics(std::string_view properties, std::vector<std::unique_ptr<Kernel>> kernels);

  struct Choice {
    const Property* property;
    Kernel* kernel;
    DType dtype;
  };
  /// What the number chooses: the first choice whose hash is at or above it. So saved bytes keep their meaning when
  /// other properties and kernels come or go.
  [[nodiscard]] const Choice& chosen(std::span<const std::uint8_t> bytes) const;
  /// All of them, by the number that is their own hash.
  [[nodiscard]] const std::map<std::uint64_t, Choice>& choices() const { return choices_; }

  struct Result {
    Case c;
    Verdict verdict;
    Choice choice;
  };
  /// Runs the case of any bytes and shows the engine its level. Nothing where the case is too large.
  [[nodiscard]] std::optional<Result> run(std::span<const std::uint8_t> bytes) const;

  /// Bytes of a case a few steps away, of the same input for another choice, or of a fresh input of any choice.
  [[nodiscard]] std::vector<std::uint8_t> mutated(std::span<const std::uint8_t> bytes, std::uint64_t seed) const;
  /// Parts of both inputs, for the choice of `a`.
  [[nodiscard]] std::vector<std::uint8_t> crossed(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b,
                                                  std::uint64_t seed) const;
  /// An input for what the number chooses, as its property's generator draws it.
  [[nodiscard]] std::vector<std::uint8_t> fresh(std::uint64_t number, Stream& stream) const;

 private:
  std::vector<std::unique_ptr<Kernel>> kernels_;
  std::map<std::uint64_t, Choice> choices_;
};

/// A violated case, or one that could not be decided: one line that names kernel, property, dtype and reason, and the
/// command that replays the case, which is saved in the folder. Empty for every other verdict.
[[nodiscard]] std::string finding_of(const Numerics::Result& result, const std::filesystem::path& folder);

}  // namespace attest
