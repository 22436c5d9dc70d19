// The cells of a contract: each of its shapes in each dtype and form. A case is made for each, and what a kernel was
// judged on is counted by them.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/kernel/manifest.h"
#include "core/problem/case.h"
#include "core/problem/selection.h"

namespace attest {

/// What a problem has beside its extents.
struct ContractForm {
  enum class Mask : std::uint8_t { none, additive, boolean };
  Mask mask = Mask::none;
  Causal causal = Causal::none;
  bool strided = false;  ///< a tensor of it is not row-major
  [[nodiscard]] auto operator<=>(const ContractForm&) const = default;
};
/// "plain", "additive", "bool, top-left", "strided"
[[nodiscard]] std::string text_of(const ContractForm& form);

struct ContractCell {
  DType dtype = DType::f32;
  std::size_t shape = 0;  ///< in Contract::shapes
  ContractForm form;
  [[nodiscard]] auto operator<=>(const ContractCell&) const = default;
};

/// Why the law rules out every problem of that shape, dtype and form; empty where it does not.
[[nodiscard]] std::string why_ruled_out(const Manifest& law, const Extents& shape, DType dtype,
                                        const ContractForm& form);
/// All cells, sorted: of each shape and dtype the forms that the law offers, masks times causal forms, each row-major
/// and, where it offers strides, strided. Masks of more elements than are drawn are left out.
[[nodiscard]] std::vector<ContractCell> cells_of(const Manifest& law, std::span<const Extents> shapes);

/// A case of that shape, dtype and form; other numbers for other seeds.
[[nodiscard]] Case case_of(const Manifest& law, const Extents& shape, DType dtype, const ContractForm& form,
                           std::uint64_t seed);
/// The cell that a case is of; nothing where its shape is none of these.
[[nodiscard]] std::optional<ContractCell> cell_of(std::span<const Extents> shapes, const Case& c);

}  // namespace attest
