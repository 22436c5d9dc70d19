// The documents' own modules as kernels: index for index as the documents have them, mistakes included (theorems.md,
// "The documents' own slips"), so that the properties can be seen to find each mistake.
#pragma once

#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "core/kernel/kernel_under_test.h"
#include "core/kernels/core_functions.h"
#include "core/kernels/core_problem.h"

namespace attest {

/// The module has no place for what the problem asks: the kernel answers `unsupported`. Where the documents' code would
/// raise on a problem it has a place for, a module throws UsageError: the kernel rejects.
class NoPlace : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A module on one scalar: the output of each batch entry, M x d_o.
template <Scalar T>
using ModuleFunction = std::vector<Matrix<T>> (*)(const attest_multihead_problem&);

struct DocumentModule {
  std::string_view name;     ///< without "document:"
  std::string_view summary;  ///< one line
  Manifest manifest;         ///< name, version, dtypes and arithmetic are filled in by entry_of
  ModuleFunction<double> f64;
  ModuleFunction<float> f32;
  /// softmax(QK^T) V, where the module is that of an input taken three times; null elsewhere.
  AttentionFunction attention = nullptr;
  /// The weights that the module returns beside its output, [batch, heads, M, N]; null where it returns none.
  Values (*weights)(const Case& c) = nullptr;
};
[[nodiscard]] KernelEntry entry_of(const DocumentModule& module);

/// The causal form that is left where a mask was built for sequences of `context` tokens and its first rows and columns
/// are laid over the scores of `tokens`. Of longer input it has too few, which throws UsageError, with one exception: a
/// single entry is broadcast, and that of the first token for itself hides nothing.
[[nodiscard]] Causal causal_of_buffer(Causal causal, Index context, Index tokens);
/// A context that no input is longer than.
inline constexpr Index as_long_as_the_input = std::numeric_limits<Index>::max();

/// What every module's manifest begins with: multi-head only, no masks and no causal form, NaN where a row has no key
/// left, deterministic, the scale 1/sqrt(dk).
[[nodiscard]] Manifest module_manifest();

/// By a kernel's id; null where it names no module or one that returns no weights.
[[nodiscard]] Values (*weights_of_document(std::string_view kernel_id))(const Case&);

// One file per document.
[[nodiscard]] std::vector<DocumentModule> modules_of_000();
[[nodiscard]] std::vector<DocumentModule> modules_of_001();
[[nodiscard]] std::vector<DocumentModule> modules_of_003();

}  // namespace attest
