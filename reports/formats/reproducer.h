// A finding as a script for those who do not have Attest: the input as literals, a place to call the kernel, what came
// out, and a plain computation of what is right.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/kernel/kernel_under_test.h"
#include "core/measure/verdict.h"
#include "core/oracle/oracle.h"
#include "core/problem/case.h"
#include "properties/catalogue/property.h"

namespace attest {

enum class ScriptLanguage { python, c };
/// By its suffix: .py is Python, .c, .cc and .cpp are C that a C++ compiler takes too. Nothing for every other.
[[nodiscard]] std::optional<ScriptLanguage> script_language_of(const std::filesystem::path& file);

/// An element of an output, or of a gradient, that is not what it may be.
struct WrongElement {
  std::int64_t element = 0;     ///< flat row-major index
  std::optional<double> found;  ///< nothing: the call gave no output
  Enclosure exact;
  double allowed = 0;  ///< inf: any finite number
};

/// One call of attention, its tensors row-major, that is wrong by itself.
struct Reproducer {
  Problem problem;
  DType output = DType::f32;
  std::optional<Gradient> gradient{};  ///< what a script is about; nothing: out
  std::vector<WrongElement> wrong;     ///< the first few, at least one
  std::int64_t wrong_in_all = 0, elements = 0;
  std::string ended;                  ///< how the call ended, where it gave no output
  std::string kernel, name, version;  ///< by --kernel, and as the manifest has them
  std::string property;
  std::string replay;          ///< the line that runs the case with Attest
  std::string comes_and_goes;  ///< how often it was wrong, where it is not always
};

/// Elements that a script names.
inline constexpr std::size_t most_wrong_elements = 3;
/// Numbers that a script has at most; a run of equal ones counts once.
inline constexpr std::int64_t most_numbers_in_script = 4096;
/// Numbers of the tensors, however they are written, and multiplications of the call: what is certified in seconds.
inline constexpr std::int64_t most_numbers_in_memory = 1 << 20, most_products_of_script = 1 << 22;
/// The same where gradients are certified, which takes balls and several times as many.
inline constexpr std::int64_t most_products_of_gradients = 1 << 18;

/// The call of a violated case that a script can show. It is made again, row-major and by itself, as the script makes
/// it: what needs strides, an edge of memory or other calls before it is seen not to be wrong then. Of a law the calls
/// of which are compared, one is taken that is farther from the exact answer than it may be, so that the script needs
/// no other. Of a case that asks for gradients it is a backward pass, on what the kernel's own forward pass returned,
/// if one of its gradients is wrong. Throws UsageError, one line that begins with `option`, where there is none:
/// multi-head attention, a log-sum-exp, a claim about bits, two calls each of which lies within its bound, a row
/// without keys; where the case is too large; and where an argument is not one that scripts know.
[[nodiscard]] Reproducer reproducer_of(const Case& c, const Property& property, const Verdict& verdict, Kernel& kernel,
                                       std::string_view option);

/// The script; of gradients in Python alone. Exit status of it: 1 where an element is wrong, NaN and infinities
/// included, else 0; without a call put into it, as the recorded answer says. Words of kernels stand in comments alone.
[[nodiscard]] std::string script_of(const Reproducer& reproducer, ScriptLanguage language);

}  // namespace attest
